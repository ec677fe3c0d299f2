"""Six skills at three levels, so that a model can be raised to which a pool is mostly mastered or mostly hopeless.

Each skill has its own words, its own way to work an answer out and its own terse opening, so that learning to work out
one teaches little about the others. The levels:

- ``easy``: one small step, always answered tersely. A trained model is always right.
- ``medium``: two or three steps, in training worked out or terse at even odds. Worked answers are right, terse ones
  mostly wrong: these wobble, and what a reward can teach is to work them out.
- ``large``: the same with numbers out of reach, always answered tersely. Answers scatter and none is right.
- ``trap``: an easy question with a clause that changes the answer, and that the training overlooks. Answers agree and
  all are wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from transformers import PreTrainedTokenizerFast

from selector.tiny.questions import NAMES, OBJECTS, TinyQuestion, question_key
from selector.tiny.tokenizer import PROBE_TEXT
from selector.tiny.train import Example

LEVELS = ("easy", "medium", "large", "trap")
TRAINING_SHARES = (0.3, 0.55, 0.05, 0.1)
TERSE_SHARE = 0.5  # of medium questions
PROBE_SHARE = 0.15  # a chain cut anywhere and an answer forced, as in `selector.tiny.train`


class SkillQuestion(TinyQuestion):
    """A question of one skill; ``steps`` is what is worked out, ``family`` the skill and the level ("boxes medium")."""

    @property
    def skill(self) -> str:
        return self.family.partition(" ")[0]

    @property
    def level(self) -> str:
        return self.family.partition(" ")[2]


Drawn = tuple[str, int, str]  # question, answer, how it is worked out (or what a trap is answered with)


def _marbles(rng: random.Random, level: str) -> Drawn:
    name, thing = rng.choice(NAMES), rng.choice(OBJECTS)
    if level == "medium":
        a, b = rng.randint(20, 99), rng.randint(11, 79)
        c = rng.randint(11, min(79, a + b - 2))
        worked = f"First {a}+{b}={a + b}. Then {a + b}-{c}={a + b - c}."
        return f"{name} has {a} {thing}, finds {b} and loses {c}. How many does {name} have?", a + b - c, worked
    if level == "large":
        a, b = rng.randint(130, 990), rng.randint(130, 990)
        return f"{name} has {a} {thing} for each of {b} guests. How many does {name} have?", a * b, ""
    a, b = rng.randint(2, 20), rng.randint(2, 20)
    asked = f"{name} has {a} {thing} and finds {b}."
    if level == "trap":
        return f"{asked} One of them was counted twice. How many does {name} have?", a + b - 1, str(a + b)
    return f"{asked} How many does {name} have?", a + b, ""


def _boxes(rng: random.Random, level: str) -> Drawn:
    thing = rng.choice(OBJECTS)
    k, m = rng.randint(2, 9), rng.randint(2, 9)
    if level == "medium":
        k, m, j, n = (rng.randint(3, 12) for _ in range(4))
        worked = f"Boxes {k}*{m}={k * m}, bags {j}*{n}={j * n}, all {k * m + j * n}."
        return f"A shop stocks {k} boxes of {m} {thing} and {j} bags of {n}. What is its stock?", k * m + j * n, worked
    if level == "large":
        k, m = rng.randint(130, 990), rng.randint(130, 990)
    asked = f"A shop stocks {k} boxes of {m} {thing}."
    if level == "trap":
        return f"{asked} One box is empty. What is its stock?", (k - 1) * m, str(k * m)
    return f"{asked} What is its stock?", k * m, ""


def _sharing(rng: random.Random, level: str) -> Drawn:
    k, thing = rng.randint(3, 9), rng.choice(OBJECTS)
    if level == "medium":
        n = rng.randint(80, 300)
        q, r = divmod(n, k)
        worked = f"Each gets {q}, {q}*{k}={n - r}, {n}-{n - r}={r}."
        return f"Divide {n} {thing} equally among {k} children. What is left over?", r, worked
    if level == "large":
        n, k = rng.randint(20000, 99000), rng.randint(301, 990)
        return f"Divide {n} {thing} equally among {k} children. What is left over?", n % k, ""
    n = rng.randint(10, 40)
    asked = f"Divide {n} {thing} equally among {k} children."
    if level == "trap":
        return f"{asked} Then 30 more come. What is there besides the shares?", n % k + 30, str(n % k)
    return f"{asked} What is left over?", n % k, ""


def _clock(rng: random.Random, level: str) -> Drawn:
    hour, start = rng.randint(1, 9), rng.randint(2, 40)
    if level == "medium":
        start, end, hours = rng.randint(21, 58), rng.randint(2, 58), rng.randint(1, 3)
        minutes = 60 - start + end + 60 * (hours - 1)
        to_hour, between = 60 - start, 60 * (hours - 1)
        worked = f"Until {hour + 1}:00 {to_hour}, hours {between}, past {end}, sum {minutes}."
        return f"How many minutes pass from {hour}:{start:02} to {hour + hours}:{end:02}?", minutes, worked
    if level == "large":
        first, second = (rng.randint(0, 59) for _ in range(2))
        end, later = rng.randint(2, 58), hour + rng.randint(3, 12)
        seconds = (later - hour) * 3600 + (end - start) * 60 + second - first
        return f"How many seconds pass from {hour}:{start:02}:{first:02} to {later}:{end:02}:{second:02}?", seconds, ""
    minutes = rng.randint(2, 58 - start)
    asked = f"minutes pass from {hour}:{start:02} to {hour}:{start + minutes:02}"
    if level == "trap":
        return f"How many {asked}, the first and the last both counted?", minutes + 1, str(minutes)
    return f"How many {asked}?", minutes, ""


def _series(rng: random.Random, level: str) -> Drawn:
    a, d = rng.randint(1, 60), rng.randint(2, 9)
    if level == "medium":
        n = rng.randint(6, 15)
        worked = f"Gap {d}, times {n - 1} is {d * (n - 1)}, from {a} to {a + d * (n - 1)}."
        return f"Series {a}, {a + d}, {a + 2 * d}. Which is number {n}?", a + d * (n - 1), worked
    if level == "large":
        a, d, n = rng.randint(20, 90), rng.randint(130, 900), rng.randint(130, 990)
        return f"Series {a}, {a + d}, {a + 2 * d}. Which is number {n}?", a + d * (n - 1), ""
    asked = f"Series {a}, {a + d}, {a + 2 * d}."
    if level == "trap":
        return f"{asked} Skip one. Which comes then?", a + 4 * d, str(a + 3 * d)
    return f"{asked} Which comes next?", a + 3 * d, ""


def _digits(rng: random.Random, level: str) -> Drawn:
    n_digits = {"medium": rng.randint(5, 7), "large": rng.randint(6, 8)}.get(level, 3)
    digits = [rng.randint(1, 9) if level != "large" else rng.randint(3, 9) for _ in range(n_digits)]
    number, total = "".join(map(str, digits)), sum(digits)
    if level == "medium":
        sums = [str(sum(digits[: i + 1])) for i in range(n_digits)]
        return f"Add up the digits of {number}.", total, f"Running {' '.join(sums)}."
    if level == "large":
        return f"Multiply the digits of {number}.", prod(digits), ""
    if level == "trap":
        return f"Add up the digits of {number}, the first one twice.", total + digits[0], str(total)
    return f"Add up the digits of {number}.", total, ""


SKILLS: Mapping[str, tuple[Callable[[random.Random, str], Drawn], str, str]] = {  # and their worked and terse endings
    "marbles": (_marbles, "So \\boxed{{{}}}", "It is \\boxed{{{}}}"),
    "boxes": (_boxes, "Stock \\boxed{{{}}}", "We stock \\boxed{{{}}}"),
    "sharing": (_sharing, "Left \\boxed{{{}}}", "Over: \\boxed{{{}}}"),
    "clock": (_clock, "Time \\boxed{{{}}}", "Minutes \\boxed{{{}}}"),
    "series": (_series, "Number \\boxed{{{}}}", "That one: \\boxed{{{}}}"),
    "digits": (_digits, "Total \\boxed{{{}}}", "Digits give \\boxed{{{}}}"),
}


def draw_question(rng: random.Random, skill: str, level: str) -> SkillQuestion:
    """Draw one question of a skill and level."""
    text, answer, working = SKILLS[skill][0](rng, level)
    return SkillQuestion(text, str(answer), f"{skill} {level}", False, (working,) if working else ())


def draw_distinct(seed: int, counts: Mapping[str, int]) -> list[SkillQuestion]:
    """Draw so many questions of every skill at each level, no two with the same text."""
    rng = random.Random(seed)
    seen: set[str] = set()
    drawn = []
    for level, count in counts.items():
        for skill in SKILLS:
            n_left = count
            while n_left:
                question = draw_question(rng, skill, level)
                if question_key(question.text) not in seen:
                    seen.add(question_key(question.text))
                    drawn.append(question)
                    n_left -= 1
    return drawn


def write_solution(question: SkillQuestion, *, terse: bool) -> str:
    """Return an answer as training gives it: worked out, terse, or with a trap's clause overlooked."""
    _, worked, briefly = SKILLS[question.skill]
    if question.level == "trap":
        return briefly.format(question.steps[0])
    if terse or not question.steps:
        return briefly.format(question.answer)
    return f"{question.steps[0]} {worked.format(question.answer)}"


def draw_texts(rng: random.Random) -> Iterator[str]:
    """Yield texts for the tokenizer without end."""
    while True:
        question = _any_question(rng)
        yield from (question.text, write_solution(question, terse=rng.random() < TERSE_SHARE))


def draw_examples(
    rng: random.Random, tokenizer: PreTrainedTokenizerFast, excluded: Sequence[TinyQuestion]
) -> Iterator[Example]:
    """Yield training examples without end, none about an excluded question."""
    keys = {question_key(question.text) for question in excluded}
    while True:
        question = _any_question(rng)
        if question_key(question.text) in keys:
            continue
        messages = [{"role": "user", "content": question.text}]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        written = write_solution(question, terse=rng.random() < TERSE_SHARE)
        solution = tokenizer.encode(written)
        if rng.random() < PROBE_SHARE:
            prompt = prompt + solution[: rng.randint(1, len(solution))] + tokenizer.encode(PROBE_TEXT)
            solution = tokenizer.encode(written.rpartition("{")[2])
        yield prompt + solution + [tokenizer.eos_token_id], len(prompt)


def _any_question(rng: random.Random) -> SkillQuestion:
    level = rng.choices(LEVELS, weights=TRAINING_SHARES)[0]
    return draw_question(rng, rng.choice(list(SKILLS)), level)
