"""`assay-tiny`: a small real language model that ships with the project, for the demo and the tests."""

from pathlib import Path

MODEL_NAME = "assay-tiny"
MODEL_DIR = Path(__file__).parent / "model"
WEIGHTS_SHA256 = "0115cd7f8d440a94a80210109d44dc94dc992f2b42305b7b934375680e321056"
