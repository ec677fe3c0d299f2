"""What is kept in the database of what models answered, and of clusters."""

from contextlib import nullcontext

import numpy as np
import pytest

from labeling.engine.embeddings import DatabaseClusterings
from labeling.engine.evidence import DatabaseCompletionStore
from labeling.models import StoredClustering, StoredCompletion
from selector.diversity import Clustering, cluster
from selector.generation.contract import Completion, CompletionKind

pytestmark = pytest.mark.django_db
OUTCOME, TRAJECTORY = CompletionKind.OUTCOME, CompletionKind.TRAJECTORY
LONG = "Let me think about it once more. " * 40


def made():
    return [
        Completion("q", OUTCOME, 0, f"{LONG}\\boxed{{4}}", 300, 9, "stop"),
        Completion("q", OUTCOME, 1, LONG, 200, 9, "length"),
        Completion("q", TRAJECTORY, 0, f"{LONG}\\boxed{{4}}", 300, 9, "stop", (1, 2, 3)),
        Completion("another", OUTCOME, 0, f"{LONG}\\boxed{{5}}", 50, 9, "stop"),
    ]


def test_answers_alone_may_be_kept():
    whole, answers = (DatabaseCompletionStore(keep, nullcontext, keep=keep) for keep in ("completions", "answers"))

    whole.add(made())
    answers.add(made())

    assert set(whole.load(["q", "another"])) == set(made())
    kept = {(each.kind, each.index): each for each in answers.load(["q"])}
    assert [kept[OUTCOME, 0].text, kept[OUTCOME, 1].text] == ["\\boxed{4}", ""]
    assert [(kept[OUTCOME, i].n_tokens, kept[OUTCOME, i].finish_reason) for i in (0, 1)] == [
        (300, "stop"),
        (200, "length"),
    ]
    assert kept[TRAJECTORY, 0] == made()[2]


def test_completions_of_one_kind_and_their_tokens_are_found():
    store = DatabaseCompletionStore("f", nullcontext)
    store.add(made())

    assert [each.index for each in store.load(["q"], TRAJECTORY)] == [0]
    assert store.tokens(["q", "nobody"]) == {OUTCOME: 500, TRAJECTORY: 300, CompletionKind.PROBE: 0}
    assert StoredCompletion.objects.count() == 4


def test_clusters_are_found_once():
    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    uids = [f"q{row}" for row in range(60)]
    store = DatabaseClusterings(nullcontext)

    labels, _ = cluster(rows, uids, 5, seed=0, store=store)
    kept = StoredClustering.objects.get()
    moved = Clustering.from_bytes(bytes(kept.data))
    moved = Clustering((moved.labels + 1) % 5, moved.centres)
    StoredClustering.objects.update(data=moved.to_bytes())

    again, _ = cluster(rows, uids, 5, seed=0, store=store)
    store.save(kept.key, Clustering(moved.labels * 0, moved.centres))

    assert again.tolist() == ((labels + 1) % 5).tolist()
    assert store.load(kept.key).labels.tolist() == moved.labels.tolist()
