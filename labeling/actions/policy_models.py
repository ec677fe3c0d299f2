"""Models that will be trained: adding one, and finding out whether it can be asked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.audit import record_event
from labeling.engine.errors import translated_errors
from labeling.engine.generation import engine_kinds, opened_model, problem_with_addresses
from labeling.errors import Conflict, LabelingError
from labeling.models import PolicyModel, User

MOST_TOKENS = 1_000_000
KEY_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def create_policy_model(
    *,
    name: str,
    engine: str,
    model: str,
    by: User | None,
    base_url: str = "",
    api_key_env: str = "",
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int = 2048,
    probe_max_tokens: int = 64,
    keep: str = PolicyModel.Keep.COMPLETIONS,
    options: Mapping[str, object] | None = None,
    check: bool = False,
) -> PolicyModel:
    """Add a policy model. With ``check`` it is opened first, and refused with the reason when it cannot be asked.

    ``by`` is None from the shell. Temperature and top_p None: as the model's authors recommend.
    """
    policies.check_can_manage_shared(by)
    added = PolicyModel(
        name=name.strip(),
        engine=engine,
        model=model.strip(),
        base_url=base_url.strip(),
        api_key_env=api_key_env.strip(),
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        probe_max_tokens=probe_max_tokens,
        keep=keep,
        options=dict(options or {}),
        created_by=by,
    )
    _check_fields(added)
    if check:
        check_policy_model(added)
    try:
        with transaction.atomic():
            added.save()
            record_event("policy_model.created", target=added, by=by, engine=engine, model=added.model)
    except IntegrityError as error:
        raise Conflict(
            _("There is a policy model named “%(name)s” already. Choose another name.") % {"name": added.name}
        ) from error
    return added


def check_policy_model(model: PolicyModel) -> Mapping[str, object]:
    """Open the model and return what it is, by name (weights, template, temperature, ...).

    Raises EngineFailure with the reason when there is no such model, when its server does not answer, and when the
    longest answer leaves no room for any question. For a local model this loads the weights; never call it inside a
    transaction.
    """
    with opened_model(model) as opened:
        with translated_errors():
            opened.engine.set_aside([], opened.settings)
        return opened.parts


def _check_fields(model: PolicyModel) -> None:
    if not model.name or not model.model:
        raise LabelingError(_("A policy model needs a name and a model."), code="invalid_policy_model")
    if model.engine not in engine_kinds():
        raise LabelingError(
            _("The engine is “%(engine)s”; it must be one of %(engines)s.")
            % {"engine": model.engine, "engines": ", ".join(engine_kinds())},
            code="invalid_policy_model",
        )
    if model.engine == "openai" and (problem := problem_with_addresses(model.base_url)):
        raise LabelingError(
            _("The address of the server is “%(base_url)s”; it must be %(wanted)s. It usually ends in /v1.")
            % {"base_url": problem.found, "wanted": problem.wanted},
            code="invalid_policy_model",
        )
    if model.api_key_env and not KEY_VARIABLE.fullmatch(model.api_key_env):
        raise LabelingError(
            _(
                "The key's variable is “%(api_key_env)s”; give the name of an environment variable that ends in "
                "_API_KEY (never the key itself)."
            )
            % {"api_key_env": model.api_key_env},
            code="invalid_policy_model",
        )
    if reserved := {"model", "base_url", "api_key_env"} & model.options.keys():
        raise LabelingError(
            _("The options repeat %(reserved)s; those have fields of their own.")
            % {"reserved": ", ".join(sorted(reserved))},
            code="invalid_policy_model",
        )
    for label, value, low, high in (("temperature", model.temperature, 0, 5), ("top_p", model.top_p, 1e-9, 1)):
        if value is not None and not low <= value <= high:
            raise LabelingError(
                _("The %(label)s is %(value)s; it must be between %(low)s and %(high)s.")
                % {"label": label, "value": value, "low": f"{low:g}", "high": f"{high:g}"},
                code="invalid_policy_model",
            )
    for tokens in (model.max_tokens, model.probe_max_tokens):
        if not 1 <= tokens <= MOST_TOKENS:
            raise LabelingError(
                _("Found a limit of %(tokens)s tokens; it must be between 1 and %(most_tokens)s.")
                % {"tokens": f"{tokens:,}", "most_tokens": f"{MOST_TOKENS:,}"},
                code="invalid_policy_model",
            )
