import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.actions.policy_models import create_policy_model
from labeling.engine.generation import engine_kinds
from labeling.errors import LabelingError
from labeling.models import PolicyModel

FIELDS = (
    "name",
    "engine",
    "model",
    "base_url",
    "api_key_env",
    "temperature",
    "top_p",
    "max_tokens",
    "probe_max_tokens",
    "keep",
)


class Command(BaseCommand):
    help = "Add a policy model: the model that will be trained, and how it is reached and sampled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="What the model is called here.")
        parser.add_argument("--engine", required=True, choices=engine_kinds())
        parser.add_argument("--model", required=True, help="Hub name, directory, or assay-tiny.")
        parser.add_argument(
            "--base-url", default="", help="Of the model server, usually ending in /v1; several with commas."
        )
        parser.add_argument(
            "--api-key-env", default="", metavar="VAR", help="Variable with the key, ending in _API_KEY."
        )
        parser.add_argument("--temperature", type=float, help="As the model's authors recommend, else 0.6.")
        parser.add_argument("--top-p", type=float, help="As the model's authors recommend, else 1.")
        parser.add_argument("--max-tokens", type=int, default=2048, help="Of a rollout (%(default)s).")
        parser.add_argument("--probe-max-tokens", type=int, default=64, help="Of a probe (%(default)s).")
        parser.add_argument(
            "--keep",
            choices=PolicyModel.Keep.values,
            default=PolicyModel.Keep.COMPLETIONS,
            help="Of full answers: all that the model writes, or the answers alone (%(default)s).",
        )
        parser.add_argument("--options", type=json.loads, default={}, help="Engine options as JSON.")
        parser.add_argument("--check", action="store_true", help="Open the model first, and refuse it if that fails.")
        parser.add_argument("--json", action="store_true", help="Print the model as JSON on standard output.")

    def handle(self, **options: Any) -> None:
        try:
            model = create_policy_model(
                **{name: options[name] for name in FIELDS}, options=options["options"], check=options["check"], by=None
            )
        except LabelingError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            self.stdout.write(json.dumps({"id": model.pk, "name": model.name}))
        else:
            self.stdout.write(f"Added the policy model “{model.name}”.")
