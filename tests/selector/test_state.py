import json

import numpy as np
import pytest

from selector.errors import StateInUse, StateMismatch
from selector.state import State, differences, write_atomically


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "picks.jsonl"
    write_atomically(path, ["old\n"])

    def failing():
        yield "new\n"
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        write_atomically(path, failing())

    assert path.read_text() == "old\n"
    assert [each.name for each in path.parent.iterdir()] == ["picks.jsonl"]


def test_one_process_at_a_time_holds_a_state(tmp_path):
    with State(tmp_path / "state"), pytest.raises(StateInUse):
        State(tmp_path / "state")

    with State(tmp_path / "state"):
        pass


def test_a_state_belongs_to_the_settings_that_claimed_it(tmp_path):
    with State(tmp_path / "state") as state:
        state.claim("aaaa", {"temperature": 0.6, "model": "m"})
        state.claim("aaaa", {"temperature": 0.6, "model": "m"})
        with pytest.raises(StateMismatch) as caught:
            state.claim("bbbb", {"temperature": 1.0, "model": "m"})

    assert caught.value.differences == "temperature 0.6, now 1.0"
    assert json.loads((tmp_path / "state" / "manifest.json").read_text())["fingerprint"] == "aaaa"


def test_settings_that_look_alike_still_get_a_reason():
    assert differences({"a": 1}, {"a": 1}) == "of another version"


def test_embeddings_are_made_once_and_follow_their_texts(tmp_path):
    made = []

    def make(texts):
        made.append(list(texts))
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)

    with State(tmp_path / "state") as state:
        first = state.embeddings(["bb", "a"], "e1", make)
        again = state.embeddings(["a", "bb"], "e1", make)
        other = state.embeddings(["a", "bb"], "e2", make)

    assert first.tolist() == [[2, 98], [1, 97]]
    assert again.tolist() == other.tolist() == [[1, 97], [2, 98]]
    assert len(made) == 2
