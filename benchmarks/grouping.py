"""Time grouping 40 answers of one question by equivalence, on answers such as Big-Math has them.

    python -m benchmarks.grouping [--questions 300]

Each question's answers are its gold answer in several spellings, wrong neighbours in several spellings, and a few that
were not read: what 40 rollouts of a middling model give. Prints one JSON line; every question is new to the caches.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

from selector.answers import Grader, MemoryVerdictStore, group_answers

ANSWERS = Path(__file__).resolve().parents[2] / "shared" / "data" / "bigmath_pool_answers.jsonl"
N_ANSWERS = 40

SPELLINGS: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: f"${text.strip('$')}$" if "\\$" not in text else text,
    lambda text: text.replace("\\frac", "\\dfrac"),
    lambda text: re.sub(r"(?<=[,=+])", " ", text) if not re.search(r"\d,\d{3}", text) else text,
    lambda text: text.replace("(", "\\left(").replace(")", "\\right)") if "\\left" not in text else text,
    lambda text: re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", text),
    lambda text: f"{text}.",
    lambda text: f"{text}.0" if text.isdigit() else text,
    lambda text: f"{int(text):,}" if text.isdigit() else text,
    lambda text: re.sub(r"\\sqrt\{(\d+)\}", lambda found: f"\\frac{{\\sqrt{{{4 * int(found[1])}}}}}{{2}}", text),
    lambda text: f"\\text{{{text}}}" if text.isdigit() else text,
    lambda text: f"x = {text}" if re.fullmatch(r"-?[\d.]+", text) else text,
]


def hard(text: str) -> str:
    """Return a whole number as nested roots, which only a proof recognises."""
    return f"\\sqrt{{3+2\\sqrt{{2}}}} - \\sqrt{{2}} + {int(text) - 1}" if text.isdigit() else text


def neighbour(text: str, rng: random.Random) -> str:
    """Return a wrong answer of the same make: one number of it is off by a little."""
    numbers = list(re.finditer(r"\d+", text))
    if not numbers:
        return text + " + 1"
    found = rng.choice(numbers)
    return text[: found.start()] + str(int(found[0]) + rng.randint(1, 5)) + text[found.end() :]


def answers_of(gold: str, rng: random.Random) -> list[str]:
    """Return 40 answers: about half of them right, from two to eight wrong ones, in many spellings, some unread."""
    wrong = [neighbour(gold, rng) for _ in range(rng.randint(2, 8))]
    answers = []
    for _ in range(N_ANSWERS):
        draw = rng.random()
        text = "" if draw < 0.05 else gold if draw < 0.5 else rng.choice(wrong)
        spell = hard if rng.random() < 0.01 else rng.choice(SPELLINGS)
        answers.append(spell(text) if text else "")
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    arguments = parser.parse_args()
    golds = [json.loads(line)["ground_truth_answer"] for line in arguments.answers.open(encoding="utf-8")]
    rng = random.Random(0)
    golds = rng.sample(golds, min(arguments.questions, len(golds)))
    questions = [answers_of(gold, rng) for gold in golds]
    seconds, n_classes, n_strings = [], 0, 0
    proofs = MemoryVerdictStore()
    with Grader(verdicts=proofs) as grader:
        grader.warm()
        group_answers(["\\sin 2x", "2\\sin x\\cos x"], grader=grader)
        for answers in questions:
            start = time.perf_counter()
            classes = group_answers(answers, grader=grader)
            seconds.append(time.perf_counter() - start)
            n_classes += len(set(classes) - {-1})
            n_strings += len(set(answers) - {""})
    seconds.sort()
    print(
        json.dumps(
            {
                "benchmark": "grouping by equivalence",
                "questions": len(questions),
                "answers_per_question": N_ANSWERS,
                "ms_per_question": round(1000 * sum(seconds) / len(seconds), 2),
                "ms_median": round(1000 * seconds[len(seconds) // 2], 2),
                "ms_worst": round(1000 * seconds[-1], 1),
                "distinct_strings_per_question": round(n_strings / len(questions), 1),
                "verdicts_from_workers": len(proofs),
                "classes_per_question": round(n_classes / len(questions), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
