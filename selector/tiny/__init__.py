"""`assay-tiny`: a small real language model that ships with the project, for the demo and the tests."""

from pathlib import Path

MODEL_NAME = "assay-tiny"
MODEL_DIR = Path(__file__).parent / "model"
WEIGHTS_SHA256 = "f67e79cf99894064c11631eed2c598a4103eff39b74fa42110fc2b51a7fb8f70"
