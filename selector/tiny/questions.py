"""Questions that `assay-tiny` is trained on and asked: arithmetic of one to four steps, bare or told as a story.

`python -m selector.tiny.questions DIR` writes the files of the demo (pool, calibration set, held-out questions).
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# fmt: off
NAMES = (
    "Anna", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Hugo", "Iris", "Jack",
    "Kira", "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tina", "Victor",
)
OBJECTS = (
    "apples", "books", "cards", "coins", "cups", "eggs", "flowers", "keys",
    "marbles", "pears", "pencils", "plums", "shells", "stamps", "tickets", "toys",
)
# fmt: on
BARE_PHRASINGS = ("Compute {}.", "What is {}?", "Calculate {}.")
BARE_SHARE = 1 / 3
DEMO_SEED = 2026
DEMO_SET_SIZES = {"pool": 300, "calibration": 300, "held_out": 300}


@dataclass(frozen=True)
class TinyQuestion:
    """A question, its answer, and the steps that lead there ("12+7=19")."""

    text: str
    answer: str
    family: str
    is_bare: bool
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Sum:
    """What a family draws: an expression, its worked steps, and ways to tell it as a story."""

    expression: str
    steps: tuple[str, ...]
    stories: tuple[str, ...]

    @property
    def answer(self) -> str:
        return self.steps[-1].rpartition("=")[2]


def _step(left: int, operator: str, right: int) -> tuple[str, int]:
    result = {"+": left + right, "-": left - right, "*": left * right, "/": left // right}[operator]
    return f"{left}{operator}{right}={result}", result


def _gain_or_loss(rng: random.Random, have: int, low: int, high: int) -> tuple[str, int]:
    """Draw a signed change that keeps what one has above zero."""
    change = rng.randint(low, high)
    return ("-" if change < have and rng.random() < 0.5 else "+"), change


def _one(rng: random.Random) -> Sum:
    a = rng.randint(5, 99)
    sign, b = _gain_or_loss(rng, a, 3, 80)
    step, _ = _step(a, sign, b)
    gain = sign == "+"
    return Sum(
        f"{a}{sign}{b}",
        (step,),
        (
            f"{{name}} has {a} {{things}} and {'gets' if gain else 'gives away'} {b}{' more' if gain else ''}. "
            "How many {things} does {name} have now?",
            f"There are {a} {{things}} in a box. {{name}} {'puts in' if gain else 'takes out'} {b}. "
            "How many {things} are in the box?",
            f"{{name}} had {a} {{things}} and {'found' if gain else 'lost'} {b}. How many are there now?",
        ),
    )


def _chain(rng: random.Random) -> Sum:
    a = rng.randint(10, 99)
    first, b = _gain_or_loss(rng, a, 3, 70)
    step_1, have = _step(a, first, b)
    second, c = _gain_or_loss(rng, have, 3, 70)
    step_2, _ = _step(have, second, c)
    verb = {"+": "finds", "-": "loses"}
    verb_2 = {"+": "buys", "-": "sells"}
    return Sum(
        f"{a}{first}{b}{second}{c}",
        (step_1, step_2),
        (
            f"{{name}} has {a} {{things}}, {verb[first]} {b} and then {verb_2[second]} {c}. "
            "How many {things} does {name} have now?",
            f"{{name}} starts with {a} {{things}}. First {{name}} {verb_2[first]} {b}, "
            f"then {{name}} {verb[second]} {c}. How many {{things}} are left?",
            f"A shelf holds {a} {{things}}. {{name}} {'adds' if first == '+' else 'takes'} {b}, then "
            f"{{other}} {'adds' if second == '+' else 'takes'} {c}. How many {{things}} are on the shelf?",
        ),
    )


def _groups(rng: random.Random) -> Sum:
    k, m = rng.randint(2, 9), rng.randint(3, 25)
    step_1, have = _step(k, "*", m)
    sign, c = _gain_or_loss(rng, have, 2, 50)
    step_2, _ = _step(have, sign, c)
    gain = sign == "+"
    return Sum(
        f"{k}*{m}{sign}{c}",
        (step_1, step_2),
        (
            f"{{name}} has {k} bags with {m} {{things}} each and {'gets' if gain else 'gives away'} {c}"
            f"{' more' if gain else ''}. How many {{things}} does {{name}} have?",
            f"{{name}} buys {k} boxes of {m} {{things}} and {'finds' if gain else 'loses'} {c}. "
            "How many {things} are there?",
            f"There are {k} rows of {m} {{things}}. {{name}} {'brings' if gain else 'takes'} {c}. "
            "How many {things} are there now?",
        ),
    )


def _share(rng: random.Random) -> Sum:
    k, each = rng.randint(2, 9), rng.randint(3, 24)
    total = k * each
    if total > 8 and rng.random() < 0.5:
        b = rng.randint(3, total - 3)
        a, sign = total - b, "+"
    else:
        b = rng.randint(3, 60)
        a, sign = total + b, "-"
    step_1, _ = _step(a, sign, b)
    step_2, _ = _step(total, "/", k)
    gain = sign == "+"
    return Sum(
        f"({a}{sign}{b})/{k}",
        (step_1, step_2),
        (
            f"{{name}} has {a} {{things}}, {'gets' if gain else 'loses'} {b}{' more' if gain else ''} and shares them "
            f"among {k} friends. How many {{things}} does each get?",
            f"{{name}} had {a} {{things}} and {'bought' if gain else 'sold'} {b}. Now they go into {k} equal bags. "
            "How many {things} are in each bag?",
            f"{{name}} {'adds' if gain else 'takes'} {b} {{things}} {'to' if gain else 'from'} a pile of {a} and makes "
            f"{k} equal groups. How many are in a group?",
        ),
    )


def _two_products(rng: random.Random, highest_price: int) -> tuple[tuple[int, int, int, int], tuple[str, ...], int]:
    k, m = rng.randint(2, 9), rng.randint(2, 9)
    p, q = rng.randint(3, highest_price), rng.randint(3, highest_price)
    step_1, first = _step(k, "*", p)
    step_2, second = _step(m, "*", q)
    step_3, total = _step(first, "+", second)
    return (k, p, m, q), (step_1, step_2, step_3), total


def _shop(rng: random.Random) -> Sum:
    (k, p, m, q), steps, _ = _two_products(rng, 25)
    return Sum(
        f"{k}*{p}+{m}*{q}",
        steps,
        (
            f"{{name}} buys {k} {{things}} at {p} dollars each and {m} {{others}} at {q} dollars each. "
            "How many dollars is that?",
            f"{{name}} packs {k} bags of {p} {{things}} and {m} bags of {q} {{others}}. How many things are packed?",
            f"{{name}} sells {k} {{things}} for {p} dollars each, {{other}} sells {m} for {q} dollars each. "
            "How many dollars do they earn together?",
        ),
    )


def _change(rng: random.Random) -> Sum:
    (k, p, m, q), steps, total = _two_products(rng, 90 if rng.random() < 0.3 else 20)
    note = rng.choice((10, 50, 100))
    paid = (total // note + 1) * note
    step_4, _ = _step(paid, "-", total)
    return Sum(
        f"{paid}-({k}*{p}+{m}*{q})",
        (*steps, step_4),
        (
            f"{{name}} buys {k} {{things}} at {p} dollars each and {m} {{others}} at {q} dollars each and pays with "
            f"{paid} dollars. How much change does {{name}} get?",
            f"{{name}} has {paid} dollars and buys {k} {{things}} for {p} dollars each and {m} {{others}} for {q} "
            "dollars each. How many dollars are left?",
        ),
    )


@dataclass(frozen=True)
class Family:
    """One kind of question: its share of a pool and how often training answers it without working it out."""

    draw: Callable[[random.Random], Sum]
    share: float
    terse_share: float  # of stories
    bare_terse_share: float


FAMILIES: Mapping[str, Family] = {
    "one": Family(_one, 0.14, terse_share=0.35, bare_terse_share=0.7),
    "chain": Family(_chain, 0.19, terse_share=0.25, bare_terse_share=0.5),
    "groups": Family(_groups, 0.19, terse_share=0.25, bare_terse_share=0.5),
    "share": Family(_share, 0.16, terse_share=0.25, bare_terse_share=0.5),
    "shop": Family(_shop, 0.17, terse_share=0.15, bare_terse_share=0.3),
    "change": Family(_change, 0.15, terse_share=0.15, bare_terse_share=0.3),
}


def draw_question(rng: random.Random) -> TinyQuestion:
    """Draw one question, families by their shares; a third are bare expressions."""
    family = rng.choices(list(FAMILIES), weights=[family.share for family in FAMILIES.values()])[0]
    drawn = FAMILIES[family].draw(rng)
    is_bare = rng.random() < BARE_SHARE
    if is_bare:
        text = rng.choice(BARE_PHRASINGS).format(drawn.expression)
    else:
        (name, other), (things, others) = rng.sample(NAMES, 2), rng.sample(OBJECTS, 2)
        text = rng.choice(drawn.stories).format(name=name, other=other, things=things, others=others)
    return TinyQuestion(text, drawn.answer, family, is_bare, drawn.steps)


def write_solution(question: TinyQuestion, *, terse: bool) -> str:
    """Return a correct answer as the model learns to give it, worked out or terse."""
    if terse:
        return f"It is \\boxed{{{question.answer}}}"
    openings = ("First", *("Then",) * (len(question.steps) - 1))
    worked = " ".join(f"{opening} {step}." for opening, step in zip(openings, question.steps, strict=True))
    return f"{worked} So \\boxed{{{question.answer}}}"


def question_key(text: str) -> str:
    """Return what makes two questions the same to the training stream: letters and digits, whatever the case."""
    return "".join(text.casefold().split()).rstrip(".?")


def demo_sets(seed: int = DEMO_SEED) -> dict[str, list[TinyQuestion]]:
    """Return the demo's pool, calibration set and held-out questions; no question is in two of them.

    The pool carries three near-duplicates and one exact duplicate besides, as real pools do.
    """
    rng = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    sets: dict[str, list[TinyQuestion]] = {}
    for name, size in DEMO_SET_SIZES.items():
        drawn: list[TinyQuestion] = []
        while len(drawn) < size:
            question = draw_question(rng)
            if question_key(question.text) not in seen:
                seen.add(question_key(question.text))
                drawn.append(question)
        sets[name] = drawn
    sets["pool"] = _with_duplicates(sets["pool"], seen)
    return sets


def _with_duplicates(pool: Sequence[TinyQuestion], seen: set[str]) -> list[TinyQuestion]:
    stories = [question for question in pool if not question.is_bare]
    bare = next(question for question in pool if question.text.startswith("What is"))
    renamed = next(question for question in stories if "Leo" in question.text and "Tina" not in question.text)
    near = [
        (stories[0], stories[0].text.lower()),
        (renamed, renamed.text.replace("Leo", "Tina")),
        (bare, "Compute " + bare.text.removeprefix("What is ").removesuffix("?") + "."),
    ]
    seen.update(question_key(text) for _, text in near)
    copies = [TinyQuestion(text, of.answer, of.family, of.is_bare, of.steps) for of, text in near]
    return [*pool, *copies, stories[1]]


def _write_jsonl(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8", newline="\n")


def write_demo_files(directory: Path) -> None:
    """Write pool.jsonl (no answers), pool_answers.jsonl, calibration.jsonl and held_out.jsonl."""
    sets = demo_sets()
    directory.mkdir(parents=True, exist_ok=True)
    _write_jsonl(directory / "pool.jsonl", ({"question": question.text} for question in sets["pool"]))
    for file_name, key in (("pool_answers", "pool"), ("calibration", "calibration"), ("held_out", "held_out")):
        rows = ({"question": question.text, "answer": question.answer} for question in sets[key])
        _write_jsonl(directory / f"{file_name}.jsonl", rows)


if __name__ == "__main__":
    write_demo_files(Path(sys.argv[1]))
