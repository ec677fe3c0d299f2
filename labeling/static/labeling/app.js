// What every page needs: fresh CSRF tokens, local times, copying, and plain words when a request fails.
"use strict";
(() => {
  const cookie = (name) =>
    document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);

  function notify(text, level, link) {
    const notice = document.createElement("div");
    notice.className = `notice ${level}`;
    notice.append(text);
    if (link) {
      const anchor = document.createElement("a");
      Object.assign(anchor, { href: link.href, textContent: link.text, target: "_blank", rel: "noopener" });
      notice.append(anchor);
    }
    const messages = document.getElementById("messages");
    if (messages.textContent.trim() === notice.textContent.trim()) return; // a poll would say it every second
    messages.replaceChildren(notice);
    notice.scrollIntoView({ block: "nearest" });
  }

  // The token changes at every login, perhaps in another tab: the cookie always has the current one.
  document.addEventListener("htmx:configRequest", (event) => {
    const token = cookie("csrftoken");
    if (!token || event.detail.verb === "get") return;
    event.detail.headers["X-CSRFToken"] = token;
    event.detail.parameters.set("csrfmiddlewaretoken", token);
  });
  document.addEventListener("submit", (event) => {
    const field = event.target.querySelector("[name=csrfmiddlewaretoken]");
    const token = cookie("csrftoken");
    if (field && token) field.value = token;
  });

  document.addEventListener("reauth", (event) => {
    if (event.target.matches("form") || event.target.closest("#work")) return; // there one logs in over the page
    notify(gettext("Your session has ended. What you typed is kept on this page. Log in in a new tab, then come back and submit again.") + " ",
      "warning", { href: document.body.dataset.login, text: gettext("Log in in a new tab") });
  });
  document.addEventListener("htmx:sendError", (event) => {
    if (event.detail.elt.matches("form")) {
      notify(gettext("No connection to the server. Nothing is lost: what you typed stays on this page. Try again in a moment."), "warning");
    }
  });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status >= 500) notify(gettext("The server could not do this. Nothing is lost; try again in a moment."), "error");
  });

  function localiseTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.valueOf())) continue;
      const minutes = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
      const thisYear = moment.getFullYear() === new Date().getFullYear();
      const options = time.dataset.show === "time" ? { timeStyle: time.dataset.seconds ? "medium" : "short" } : thisYear ? minutes : { dateStyle: "medium", timeStyle: "short" };
      time.textContent = new Intl.DateTimeFormat(undefined, { ...options, hourCycle: "h23" }).format(moment);
      time.title = moment.toString();
    }
  }
  // The server says that it has an answer: only then is this browser's copy removed.
  function forgetSubmitted() {
    for (const notice of document.querySelectorAll("#messages [data-about^=assay-draft-]")) {
      localStorage.removeItem(notice.dataset.about);
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    localiseTimes(document);
    forgetSubmitted();
    document.querySelector(".subnav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  });
  document.addEventListener("htmx:afterSettle", (event) => localiseTimes(event.target));

  // Writing into a choice's own field means that choice.
  document.addEventListener("input", (event) => {
    const radio = event.target.closest(".choice")?.querySelector("[type=radio]");
    if (radio && radio !== event.target) radio.checked = true;
  });

  // A second look that is not taken closes again.
  function closeConfirmations(but) {
    for (const open of document.querySelectorAll("details.confirm[open]")) if (open !== but) open.open = false;
  }
  document.addEventListener("click", (event) => closeConfirmations(event.target.closest("details.confirm")));
  document.addEventListener("keydown", (event) => {
    const open = document.querySelector("details.confirm[open]");
    if (event.key !== "Escape" || !open) return;
    if (open.contains(document.activeElement)) open.querySelector("summary").focus();
    closeConfirmations();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    source.select?.();
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = gettext("Copied");
  });
})();
