"""Asking a policy model, through the engine's adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from labeling.engine.errors import translated_errors
from labeling.engine.evidence import DatabaseCompletionStore, Rows
from labeling.models import GenerationSettings, PolicyModel
from selector.errors import FingerprintMismatch, InvalidConfig
from selector.generation import ENGINES, Engine, Prompt, SamplingSettings, open_engine
from selector.generation.addresses import server_urls
from selector.outcomes import ModelOutcomes
from selector.volatility import probe_questions

DEFAULT_TEMPERATURE, DEFAULT_TOP_P = 0.6, 1.0


@dataclass(frozen=True)
class OpenModel:
    """A policy model that can be asked, with the settings it is sampled with and their fingerprint."""

    engine: Engine
    settings: SamplingSettings
    fingerprint: str
    parts: Mapping[str, object]


@dataclass(frozen=True)
class Probed:
    """What probing did. ``set_aside``: per uid the code and the reason; ``tokens`` generated, per stage."""

    set_aside: Mapping[str, tuple[str, str]]
    tokens: Mapping[str, int]


@contextmanager
def opened_model(model: PolicyModel) -> Iterator[OpenModel]:
    """Load the model or connect to its server. Raises EngineFailure when there is no such model or no server."""
    options = {**model.options, "base_url": model.base_url or None, "api_key_env": model.api_key_env or None}
    with translated_errors():
        engine = open_engine(model.engine, model=model.model, **options)
    try:
        with translated_errors():
            recommended = engine.recommended_sampling()
            settings = SamplingSettings(
                temperature=_first(model.temperature, recommended.get("temperature"), DEFAULT_TEMPERATURE),
                top_p=_first(model.top_p, recommended.get("top_p"), DEFAULT_TOP_P),
                max_tokens=model.max_tokens,
                probe_max_tokens=model.probe_max_tokens,
            )
            opened = OpenModel(engine, settings, engine.fingerprint(settings), engine.describe(settings))
        yield opened
    finally:
        engine.close()


def check_same_settings(*, pool: str, calibration: str) -> None:
    """Raise EngineFailure, naming what differs as far as is known, when two generation fingerprints differ."""
    if pool == calibration:
        return
    parts = dict(GenerationSettings.objects.filter(pk__in=[pool, calibration]).values_list("fingerprint", "parts"))
    ours, theirs = parts.get(pool), parts.get(calibration)
    differences = ""
    if ours is not None and theirs is not None:
        names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        differences = "; ".join(f"{name}: {ours.get(name)} against {theirs.get(name)}" for name in names)
    with translated_errors():
        raise FingerprintMismatch(pool=pool, calibration=calibration, differences=differences)


def probe(
    model: OpenModel,
    rows: Rows,
    *,
    store: DatabaseCompletionStore,
    n_outcomes: int,
    n_probes: int,
    seed: int,
    progress: Callable[[str, int, int], None],
    with_trajectories: bool = True,
) -> Probed:
    """Make the completions that are not stored yet. ``progress`` hears of every chunk saved; what it raises stops here.

    Raises EngineFailure when the model cannot be asked any more. What was saved stays.
    """
    in_order = sorted(rows, key=lambda row: row.uid, reverse=True)  # of equal questions the first uid's text is asked
    prompts = {row.fingerprint: Prompt(row.fingerprint, row.text, tuple(row.choices)) for row in in_order}
    with translated_errors():
        summary = probe_questions(
            model.engine,
            list(prompts.values()),
            settings=model.settings,
            n_outcomes=n_outcomes,
            n_probes=n_probes,
            seed=seed,
            store=store,
            with_trajectories=with_trajectories,
            progress=progress,
        )
    reasons = {each.uid: (each.code, each.message) for each in summary.set_aside}
    return Probed(
        set_aside={row.uid: reasons[row.fingerprint] for row in rows if row.fingerprint in reasons},
        tokens=summary.tokens,
    )


def race_outcomes(
    model: OpenModel,
    rows: Rows,
    *,
    store: DatabaseCompletionStore,
    seed: int,
    should_stop: Callable[[], bool],
) -> ModelOutcomes:
    """Return the model's outcomes of these questions, to be asked for one by one; to be closed."""
    in_order = sorted(rows, key=lambda row: row.uid, reverse=True)
    texts = {row.fingerprint: Prompt(row.fingerprint, row.text, tuple(row.choices)) for row in in_order}
    return ModelOutcomes(
        model.engine,
        {row.uid: texts[row.fingerprint] for row in rows},
        settings=model.settings,
        seed=seed,
        store=store,
        should_stop=should_stop,
    )


def remember_settings(model: OpenModel) -> None:
    """Keep what the model's generation fingerprint stands for."""
    GenerationSettings.objects.get_or_create(fingerprint=model.fingerprint, defaults={"parts": dict(model.parts)})


def problem_with_addresses(base_url: str) -> InvalidConfig | None:
    """Say what is wrong with the addresses of model servers, if anything is: what was found, what was wanted."""
    try:
        server_urls(base_url)
    except InvalidConfig as error:
        return error
    return None


def engine_kinds() -> list[str]:
    """The names of the engines there are."""
    return list(ENGINES)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
