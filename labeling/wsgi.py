"""The application as a server runs it: what answers need is made ready before the first one comes."""

import gc
import os
import threading

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")
application = get_wsgi_application()

import labeling.urls  # noqa: E402, F401 (all pages, so that nobody's first question waits for them)
from labeling.engine.answers import grader  # noqa: E402

gc.collect()
gc.freeze()  # what is loaded by now stays: collecting garbage need not look through it, which takes a tenth of a second
threading.Thread(target=grader().warm, name="warm grader", daemon=True).start()
