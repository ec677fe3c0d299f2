"""`assay-tiny`: a small real language model that ships with the project, for the demo and the tests."""

from pathlib import Path

MODEL_NAME = "assay-tiny"
MODEL_DIR = Path(__file__).parent / "model"
WEIGHTS_SHA256 = "773add75ccca2488843deddf5cadee5044931a6dbb72ee1249ea5208314dc686"
