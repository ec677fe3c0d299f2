"""A plan, as people read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selector.spending import duration

KINDS = {"trajectories": "chains of thought", "probes": "forced answers", "outcomes": "full answers"}


def lines_of(told: Mapping[str, Any], *, price: float | None, n_gpus: int) -> list[str]:
    """Return the lines of a plan (``selector.planning.plan``, with the questions it is for)."""
    lines = []
    for path, found in told["questions"].items():
        aside = ", ".join(f"{n:,} {code}" for code, n in sorted(found["set_aside"].items()))
        lines.append(f"{path}: {found['usable']:,} questions usable" + (f"; set aside: {aside}" if aside else ""))
    if n := told.get("too_long"):
        lines.append(f"{n:,} questions of the pool are too long for the model and will be set aside.")
    completions = told["completions"]
    width = max(len(name) for name in KINDS.values()) + 2
    lines += ["", f"{'asked for':{width}}{'pool':>16}{'calibration':>16}"]
    for kind, name in KINDS.items():
        lines.append(f"{name:{width}}{completions['pool'][kind]:>16,}{completions['calibration'][kind]:>16,}")
    lengths = told["lengths"]
    lines += [
        "",
        f"Lengths in tokens: prompt {lengths['prompt']:,.0f} ({lengths['prompt_basis']}), "
        f"chain {lengths['chain']:,.0f}, forced answer {lengths['probe_reply']:,.0f}, "
        f"full answer {lengths['outcome']:,.0f} ({lengths['answer_basis']})",
    ]
    columns = {"full": [told["full"]]} | ({"raced": told["raced"]} if "raced" in told else {})
    lines += ["", f"{'':{width}}" + "".join(f"{name:>36}" for name in columns)]
    for key, name, shown in (
        ("tokens_generated", "tokens generated", _count),
        ("tokens_read", "tokens read", _count),
        ("hours", "time", lambda hours: duration(3600 * hours)),
        ("money", "money", lambda money: f"{money:,.2f}"),
    ):
        if key in told["full"]:
            lines.append(f"{name:{width}}" + "".join(f"{_range(rows, key, shown):>36}" for rows in columns.values()))
    lines.append("")
    if rate := told["tokens_per_second"]:
        lines.append(f"At {rate:,.0f} tokens a second, a token that is read counting as a quarter of one.")
    else:
        lines.append("For time and money, give --tokens-per-second, or --sample to measure it.")
    if price is not None:
        lines.append(f"At {price:,.2f} an hour for each of {n_gpus:,} GPU{'' if n_gpus == 1 else 's'}.")
    if "raced" in told:
        lines.append(
            "A race (the default) asks for full answers only where the picks depend on them. Its range is that of "
            "simulated answers, from thresholds above 0 to -0.1; pools of another make-up save more or less."
        )
    if "sample" in told:
        sample = told["sample"]
        lines.append(
            f"Measured on {sample['questions']:,} questions. A model that answers more at a time is faster than with "
            "a sample of few."
        )
    return lines


def _range(rows: Sequence[Mapping[str, float]], key: str, shown: Any) -> str:
    texts = [shown(row[key]) for row in rows]
    return texts[0] if len(set(texts)) == 1 else f"{texts[0]} to {texts[-1]}"


def _count(n: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if n >= unit:
            return f"{n / unit:,.2f} {name}"
    return f"{n:,.0f}"
