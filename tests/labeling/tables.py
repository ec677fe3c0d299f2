"""Tables for processes that race on a database of their own."""

from django.apps import apps
from django.conf import settings
from django.core.management import call_command


def make_tables() -> None:
    """Make the tables from the models, which takes a tenth of the time of migrating."""
    settings.MIGRATION_MODULES = {app.label: None for app in apps.get_app_configs()}
    call_command("migrate", run_syncdb=True, verbosity=0)
