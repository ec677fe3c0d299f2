"""What a state has stored, read as gzip files of JSON Lines."""

import gzip
import json
from contextlib import suppress


def completions_in(state):
    rows = []
    for shard in sorted((state / "completions").glob("*.jsonl.gz")):
        with gzip.open(shard, "rt") as file, suppress(EOFError):  # a killed process may have torn the end
            rows.extend(json.loads(line) for line in file)
    return rows
