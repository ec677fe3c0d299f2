"""Property tests have no deadline: a loaded machine, or a first import of scipy, is no failure."""

from hypothesis import settings

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
