import json

import numpy as np
import pytest

from selector.diversity import Clustering
from selector.errors import StateInUse, StateMismatch
from selector.generation.contract import Completion, CompletionKind
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


def make_lengths(made):
    def make(texts):
        made.append(list(texts))
        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)

    return make


def test_embeddings_are_made_once_and_follow_their_texts(tmp_path):
    made = []
    make = make_lengths(made)

    with State(tmp_path / "state") as state:
        first = state.embeddings(["bb", "a", "bb"], "e1", make)
        again = state.embeddings(["a", "bb"], "e1", make)
        other = state.embeddings(["a", "bb"], "e2", make)

    assert first.tolist() == [[2, 98], [1, 97], [2, 98]]
    assert again.tolist() == other.tolist() == [[1, 97], [2, 98]]
    assert [sorted(texts) for texts in made] == [["a", "bb"], ["a", "bb"]]


def test_a_pool_that_grew_has_only_the_new_texts_embedded(tmp_path):
    made, told = [], []
    with State(tmp_path / "state") as state:
        state.embeddings([f"question {i}" for i in range(300)], "e", make_lengths(made))
        n_before = sum(path.stat().st_size for path in state.path.glob("embeddings-*"))
        made.clear()
        grown = [f"question {i}" for i in range(310)]

        vectors = state.embeddings(grown, "e", make_lengths(made), lambda done, total: told.append((done, total)))

        n_after = sum(path.stat().st_size for path in state.path.glob("embeddings-*"))

    assert [sorted(texts) for texts in made] == [sorted(grown[300:])]
    assert vectors[:, 0].tolist() == [len(text) for text in grown]
    assert told == [(300, 310), (310, 310)]
    assert n_after - n_before == 10 * (2 * 4 + 16)


@pytest.mark.parametrize(("suffix", "n_bytes"), [("f32", 3), ("keys", 5)])
def test_vectors_torn_by_a_crash_are_made_again(tmp_path, suffix, n_bytes):
    made = []
    texts = ["a", "bb", "ccc"]
    with State(tmp_path / "state") as state:
        whole = state.embeddings(texts, "e", make_lengths(made))
        (rows,) = state.path.glob("embeddings-*.f32")
        (keys,) = state.path.glob("embeddings-*.keys")
        rows.write_bytes(rows.read_bytes() + b"x" * n_bytes)  # rows come first: their keys may be missing
        keys.write_bytes(keys.read_bytes()[:-n_bytes] if suffix == "keys" else keys.read_bytes())
        made.clear()

        again = state.embeddings(texts, "e", make_lengths(made))

    assert again.tolist() == whole.tolist()
    assert sum(map(len, made)) == (1 if suffix == "keys" else 0)


def test_no_texts_have_no_vectors(tmp_path):
    with State(tmp_path / "state") as state:
        assert state.embeddings([], "e", make_lengths([])).shape[0] == 0


def test_completions_of_an_earlier_version_are_taken_over(tmp_path):
    row = {
        "uid": "q", "kind": "outcome", "index": 3, "text": "\\boxed{1}", "n_tokens": 4, "n_prompt_tokens": 2,
        "finish_reason": "stop", "token_ids": [],
    }  # fmt: skip
    (tmp_path / "completions.jsonl").write_text(json.dumps(row) + "\n" + '{"uid": "torn')

    for n_notices in (1, 0):
        with State(tmp_path) as state:
            (found,) = state.completions.load(["q"])
            assert (found.uid, found.index, found.text) == ("q", 3, "\\boxed{1}")
            assert len(state.notices) == n_notices

    assert not (tmp_path / "completions.jsonl").exists()


def test_torn_completions_are_told(tmp_path):
    with State(tmp_path) as state:
        state.completions.add([Completion("q", CompletionKind.OUTCOME, 0, "", 1, 1, "stop")])
    (shard,) = (tmp_path / "completions").iterdir()
    shard.write_bytes(shard.read_bytes()[:-1])

    with State(tmp_path) as state:
        assert "were torn" in state.notices[0]
        assert state.completions.keys(["q"]) == set()


def test_a_clustering_is_kept_and_found_again(tmp_path):
    clustering = Clustering(np.array([0, 1, 1], np.int32), np.ones((2, 4), np.float32))
    with State(tmp_path) as state:
        assert state.clusterings.load("k") is None
        state.clusterings.save("k", clustering)

    with State(tmp_path) as state:
        found = state.clusterings.load("k")

    assert found.labels.tolist() == [0, 1, 1]
    assert found.centres.tolist() == clustering.centres.tolist()
