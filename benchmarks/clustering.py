"""Cluster 100,000 and 1,000,000 embeddings of 384 numbers into 512 clusters: ours against KMeans(n_init="auto").

Prints one JSON line. Every case runs in a process of its own, on one thread, over the same memory-mapped file of
unit-length float32 vectors from a three-level topic tree (a synthetic one). Seconds are processor seconds of the
clustering alone; the peak is of the whole process, the mapped file included. KMeans itself runs on the first 100,000
rows and is extrapolated linearly to all: its k-means++ start is linear in the rows, and so is an iteration.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray

SEED = 0
BRANCHES = (12, 12, 12)  # topics, topics in each, topics in each of those
SHARES = (0.19, 0.24, 0.23)  # of a vector's squared length; the rest is the question's own
CHUNK = 20_000


def write_embeddings(path: Path, n: int, n_dimensions: int) -> None:
    """Write n unit vectors to a .npy file, chunk by chunk; the first m rows are the same whatever n is."""
    rng = np.random.default_rng(SEED)
    levels, n_nodes = [], 1
    for branches in BRANCHES:
        n_nodes *= branches
        levels.append(rng.normal(size=(n_nodes, n_dimensions)).astype(np.float32))
    popularity = rng.dirichlet(np.full(n_nodes, 0.7))
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, n_dimensions))
    for number, start in enumerate(range(0, n, CHUNK)):
        own = np.random.default_rng([SEED, number])
        leaf = own.choice(n_nodes, size=CHUNK, p=popularity)
        rows = own.normal(size=(CHUNK, n_dimensions)).astype(np.float32) * np.float32(np.sqrt(1 - sum(SHARES)))
        for level, share in zip(levels, SHARES, strict=True):
            rows += level[leaf // (n_nodes // len(level))] * np.float32(np.sqrt(share))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        out[start : start + CHUNK] = rows[: n - start]
    out.flush()


def cluster_ours(rows: NDArray[np.float32], n_clusters: int) -> float:
    from selector.diversity import cluster

    _, distances = cluster(rows, [f"q{row}" for row in range(len(rows))], n_clusters, SEED)
    return float((distances**2).sum())


def cluster_published(rows: NDArray[np.float32], n_clusters: int) -> float:
    """KMeans as the published code calls it."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return float(KMeans(n_clusters, n_init="auto", random_state=42).fit(rows).inertia_)


CASES = {"ours": cluster_ours, "published": cluster_published}


def measure(case: str, path: Path, n: int, n_clusters: int) -> dict[str, float]:
    """Run one case and say what it took; called in a process of its own."""
    rows = np.load(path, mmap_mode="r")[:n]
    cluster_ours(rows[:500], 5)  # imports
    started = time.process_time()
    inertia = CASES[case](rows, n_clusters)
    return {
        "cpu_seconds": time.process_time() - started,
        "inertia": inertia,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def in_a_process(case: str, path: Path, n: int, n_clusters: int) -> dict[str, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(measure, (case, path, n, n_clusters))
    print(f"{case}, {n:,} rows: {found['cpu_seconds']:.1f} CPU s, inertia {found['inertia']:,.0f}", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--compared-rows", type=int, default=100_000, help="rows on which both sides run")
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=512)
    options = parser.parse_args()
    n, n_compared = options.rows, min(options.compared_rows, options.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.npy"
        write_embeddings(path, n, options.dimensions)
        ours = in_a_process("ours", path, n_compared, options.clusters)
        published = in_a_process("published", path, n_compared, options.clusters)
        ours_on_all = in_a_process("ours", path, n, options.clusters)
    extrapolated = published["cpu_seconds"] * n / n_compared
    print(
        json.dumps(
            {
                "benchmark": "clustering",
                "rows": n,
                "dimensions": options.dimensions,
                "clusters": options.clusters,
                "compared_rows": n_compared,
                "compared_cpu_seconds": round(ours["cpu_seconds"], 1),
                "compared_published_cpu_seconds": round(published["cpu_seconds"], 1),
                "compared_times_less": round(published["cpu_seconds"] / ours["cpu_seconds"], 2),
                "inertia_ratio": round(ours["inertia"] / published["inertia"], 4),
                "cpu_seconds": round(ours_on_all["cpu_seconds"], 1),
                "published_cpu_seconds_extrapolated": round(extrapolated, 1),
                "times_less": round(extrapolated / ours_on_all["cpu_seconds"], 2),
                "inertia_per_row": round(ours_on_all["inertia"] / n, 4),
                "peak_per_embedding_byte": round(ours_on_all["peak_bytes"] / (n * options.dimensions * 4), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
