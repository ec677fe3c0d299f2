"""Internals as arrays: rows by uid, files that say what they are, and a store that survives a crash."""

import base64
import json
import zipfile

import numpy as np
import pytest

from selector.errors import FingerprintMismatch, InvalidConfig, InvalidRow
from selector.internals import Internals, JsonlInternalsStore, concatenate
from tests.selector.internals.simulated import simulate_internals

UIDS = ["a", "ü/2", "c"]


def same(first, second):
    arrays = [name for name in vars(first) if name not in {"uids", "fingerprint"}]
    return (
        first.uids == second.uids
        and first.fingerprint == second.fingerprint
        and all(np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays)
        and all(getattr(first, name).dtype == getattr(second, name).dtype for name in arrays)
    )


def test_a_file_gives_back_what_was_saved(tmp_path):
    internals = simulate_internals(UIDS)

    internals.save(tmp_path / "f.npz")

    assert same(Internals.load(tmp_path / "f.npz"), internals)
    with zipfile.ZipFile(tmp_path / "f.npz") as file:
        assert all(b"pickle" not in file.read(name)[:200] for name in file.namelist())


def test_rows_are_taken_by_uid_and_missing_ones_are_named():
    internals = simulate_internals(UIDS)

    taken = internals.take(["c", "a"])

    assert np.array_equal(taken.start, internals.start[[2, 0]])
    with pytest.raises(InvalidConfig) as caught:
        internals.take(["a", "nowhere"])
    assert "'nowhere'" in str(caught.value)


def test_joining_parts_gives_the_whole_and_other_models_are_refused():
    internals = simulate_internals(UIDS)

    assert same(concatenate([internals.take([uid]) for uid in UIDS]), internals)
    other = Internals(**{**vars(internals), "fingerprint": "other"})
    with pytest.raises(FingerprintMismatch):
        concatenate([internals, other])


def test_questions_that_could_not_be_asked_get_empty_rows():
    padded = simulate_internals(["a"]).with_blank(["b"])

    assert padded.uids == ("a", "b")
    assert padded.start[1].tolist() == [0] * 6
    assert padded.n_response_tokens[1] == 0


def test_density_is_pivots_per_token():
    internals = simulate_internals(["a", "b"]).with_blank(["c"])

    expected = internals.n_pivots[:2] / internals.n_response_tokens[:2]
    np.testing.assert_allclose(internals.pivot_density[:2], expected, rtol=1e-6)
    assert internals.pivot_density[2] == 0


@pytest.mark.parametrize("content", [b"", b"not a zip", None])
def test_a_file_of_something_else_is_named(tmp_path, content):
    path = tmp_path / "f.npz"
    if content is None:
        np.savez(path, something=np.zeros(3))
    else:
        path.write_bytes(content)

    with pytest.raises(InvalidConfig) as caught:
        Internals.load(path)

    assert "f.npz" in str(caught.value)


def test_a_file_of_another_version_asks_to_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("selector.internals.contract.READER_VERSION", 0)
    simulate_internals(UIDS).save(tmp_path / "f.npz")
    monkeypatch.undo()

    with pytest.raises(InvalidConfig) as caught:
        Internals.load(tmp_path / "f.npz")

    assert "read the internals again" in str(caught.value)


def test_a_store_keeps_rows_and_forgets_a_torn_one(tmp_path):
    internals = simulate_internals(UIDS)
    path = tmp_path / "internals.jsonl"
    store = JsonlInternalsStore(path)
    store.add([internals.take(["a"]), internals.take(["ü/2"])])
    with path.open("ab") as file:
        file.write(b'{"uid": "c", "version": 1, "da')

    again = JsonlInternalsStore(path)
    found = again.load([*UIDS, "nowhere"])

    assert sorted(found) == ["a", "ü/2"]
    assert same(found["a"], internals.take(["a"]))
    again.add([internals.take(["c"])])
    assert same(JsonlInternalsStore(path).load(["c"])["c"], internals.take(["c"]))


def test_rows_of_another_version_are_read_again(tmp_path):
    path = tmp_path / "internals.jsonl"
    data = base64.b64encode(simulate_internals(["a"]).to_bytes()).decode()
    path.write_text(json.dumps({"uid": "a", "version": 0, "data": data}) + "\n")

    assert JsonlInternalsStore(path).load(["a"]) == {}


def test_a_store_file_of_something_else_is_named_by_line(tmp_path):
    path = tmp_path / "internals.jsonl"
    path.write_text('{"id": 3}\n')

    with pytest.raises(InvalidRow) as caught:
        JsonlInternalsStore(path)

    assert (caught.value.line, caught.value.row_code) == (1, "not_internals")
