#!/usr/bin/env python
"""Django's command line for Assay."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a model's threads that wait leave the cores to others
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
