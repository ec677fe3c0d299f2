"""Ids of labeled questions are read from plain lists and from picks files alike."""

import json

import pytest

from selector.errors import UnusableFile
from selector.labeled import read_labeled


def test_ids_and_picks_are_read_each_id_once(tmp_path):
    ids, picks = tmp_path / "ids.txt", tmp_path / "picks.jsonl"
    ids.write_bytes("\ufeffa\r\n\r\nb\n".encode())
    picks.write_text(json.dumps({"id": "b", "rank": 1}) + "\n" + json.dumps({"uid": 7}) + "\n")

    assert read_labeled([ids, picks]) == ["a", "b", "7"]


def test_what_only_looks_like_the_end_of_a_line_ends_none(tmp_path):
    pick = {"id": "a", "prediction_set": [{"answer": "one\u2028two\x85three", "frequency": 1.0}]}
    picks = tmp_path / "picks.jsonl"
    picks.write_text(json.dumps(pick, ensure_ascii=False) + "\n", encoding="utf-8")

    assert read_labeled([picks]) == ["a"]


def test_every_line_that_is_no_id_is_named(tmp_path):
    picks = tmp_path / "picks.jsonl"
    picks.write_text('{"id": "a"\n{"id": true}\nb\n{"rank": 1}\n')

    with pytest.raises(UnusableFile) as raised:
        read_labeled([picks])

    assert [f"line {number}" in str(raised.value) for number in (1, 2, 3, 4)] == [True, True, False, True]


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(UnusableFile, match="not UTF-8"):
        read_labeled([path])
