from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from labeling.actions.curricula import create_curriculum
from labeling.actions.exports import create_snapshot
from labeling.actions.imports import pool_named
from labeling.actions.tokens import create_token
from labeling.engine.curricula import curriculum_kinds
from labeling.errors import LabelingError
from labeling.models import User
from labeling.policies import check_can_manage


class Command(BaseCommand):
    help = (
        "Freeze a pool's gold answers, make a curriculum over their questions, and print the settings with which a "
        "trainer uses it. With --token-of a token is made too; it is printed this once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        kinds = [kind.key for kind in curriculum_kinds()]
        parser.add_argument("name", help="Of the training run.")
        parser.add_argument("--pool", required=True, metavar="NAME")
        parser.add_argument("--kind", choices=kinds, default=kinds[0], help=f"Order of the questions ({kinds[0]}).")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--another-model", action="store_true", help="Do not start from the stored rollouts: they are another's."
        )
        parser.add_argument("--token-of", metavar="USERNAME", help="Make a token for this manager of the pool.")
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", help="Where the application is served.")

    def handle(self, *, name: str, token_of: str | None, base_url: str, **options: Any) -> None:
        owner = User.objects.filter(username=token_of, is_active=True).first()
        if token_of and owner is None:
            raise CommandError(f"There is no active account {token_of}. create_manager makes one.")
        try:
            pool = pool_named(options["pool"])
            if owner:
                check_can_manage(pool, owner)  # before anything is made
            curriculum = create_curriculum(
                pool=pool,
                snapshot=create_snapshot(pool=pool, by=None),
                kind=options["kind"],
                name=name,
                by=None,
                seed=options["seed"],
                uses_stored_rollouts=not options["another_model"],
            )
            token = create_token(pool=pool, name=name, by=owner)[1] if owner else ""
        except LabelingError as error:
            raise CommandError(error.message) from error
        address = reverse("api-curriculum", args=[curriculum.pk])
        self.stdout.write(f"ASSAY_REWARD_URL={base_url.rstrip('/')}{address}")
        if token:
            self.stdout.write(f"ASSAY_REWARD_TOKEN={token}")
        self.stderr.write(self.style.SUCCESS(f"{curriculum}: {curriculum.snapshot.n_rows:,} questions."))
