"""Scripted people, who see what people see: they log in, press buttons and fill in forms of the served pages."""

from collections.abc import Callable
from urllib.parse import urlsplit

import mechanicalsoup
import sesame.utils
from django.urls import resolve, reverse

from labeling.errors import LabelingError
from labeling.models import User


class Visitor:
    """A person at a browser without JavaScript."""

    def __init__(self, user: User, address: str) -> None:
        self.user, self.address = user, address
        self.browser = mechanicalsoup.StatefulBrowser(raise_on_404=True)
        self.open(login_path(user))
        self._press("Log in")

    def open(self, path: str) -> None:
        """Go to a page. Raises LabelingError when it cannot be shown."""
        self._check(self.browser.open(self.address + path))

    def answer_round(self, round_id: int, answer: Callable[[str], str]) -> int:
        """Answer whatever the round has for this person; return how many questions that was."""
        n_answered = 0
        self.open(reverse("round", args=[round_id]))
        while self._take(reverse("annotate", args=[round_id])):
            question = self._question()
            self.browser.select_form("#answer-form")
            self.browser["answer"] = answer(question)
            self._check(self.browser.submit_selected())
            self._keep_answer()
            n_answered += 1
        return n_answered

    def decide_round(self, round_id: int, answer: Callable[[str], str]) -> int:
        """Decide whatever disagreements the round has; return how many."""
        n_decided = 0
        self.open(reverse("round", args=[round_id]))
        while self._take(reverse("adjudicate", args=[round_id])):
            question = self._question()
            self.browser.select_form('form:has(input[value="other"])')
            self.browser["decision"], self.browser["answer"] = "other", answer(question)
            self._check(self.browser.submit_selected())
            n_decided += 1
        return n_decided

    def _keep_answer(self) -> None:
        """Stand by the answer where the model's are shown after it."""
        if self.browser.page.select_one("#reveal-form"):
            self.browser.select_form("#reveal-form")
            self.browser["choice"] = "keep"
            self._check(self.browser.submit_selected())

    def _take(self, action: str) -> bool:
        """Be on a question to answer: press the round's button for it unless one is shown already."""
        if resolve(urlsplit(self.browser.url).path).url_name in {"slot", "adjudication"}:
            return True
        if self.browser.page.select_one(f'form[action="{action}"]') is None:
            return False
        self.browser.select_form(f'form[action="{action}"]')
        self._check(self.browser.submit_selected())
        return resolve(urlsplit(self.browser.url).path).url_name in {"slot", "adjudication"}

    def _question(self) -> str:
        return self.browser.page.select_one(".question.large").get_text().strip()

    def _press(self, label: str) -> None:
        self.browser.select_form(f'form:has(button:-soup-contains("{label}"))')
        self._check(self.browser.submit_selected())

    def _check(self, response) -> None:
        if not response.ok:
            said = self.browser.page.get_text(" ", strip=True)[:300] if self.browser.page else response.text[:300]
            raise LabelingError(f"{response.url} answered {response.status_code}: {said}", code="page_refused")


def login_path(user: User) -> str:
    """Return a one-time login link without the host."""
    return reverse("login") + sesame.utils.get_query_string(user)
