"""What does exact search cost? The certified scan, tuned FAISS and other libraries, on one million vectors.

`python -m benchmarks.flat --work FOLDER [--rows N] [--parts …]` → benchmarks/results/flat.json. One core; CPU
milliseconds per batch, the minimum of several rounds in which the systems take turns. Vectors: real_vectors.py, and
random vectors as a second case. FAISS is tuned: `distance_compute_blas_threshold` is set per batch size. All results
are compared: `same_rows` is the share of FAISS's rows that equal ours, rank by rank; where they differ, float32
rounding in FAISS decided between nearly equal scores. The other libraries scan the first 100,000 rows, extrapolated
to all rows: numpy and torch in float32 or bfloat16 blocks with a running threshold, numkong's int8 and bfloat16
matrix products (the product alone, without selection). Targets: at least .9 × FAISS at any batch size, 1.2 × at 1, 2
× at 64 and 1,000.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import real_vectors
from benchmarks.support.common import cpu_time, in_child, record, recorded
from benchmarks.support.harness import KEPT, Arguments, Commas, benchmark
from benchmarks.support.passages import SEED
from indexes import kernels
from indexes.interface import Matrix
from indexes.vectors.certified import ByteScan
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.flat import BLAS_BATCH, BLAS_THRESHOLD, NEVER

BATCHES, KS = (1, 8, 64, 1000), (5, 100)
ROUNDS = {1: 9, 8: 5, 64: 3, 1000: 2}
LIBRARY_ROWS, BLOCK = 100_000, 4096
Search = Callable[[Matrix, int], tuple[Any, Any]]


def tuned_faiss(vectors: Matrix) -> Search:
    faiss = load_faiss()
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)

    def search(queries: Matrix, k: int) -> tuple[Any, Any]:
        with BLAS_THRESHOLD.at(1 if len(queries) >= BLAS_BATCH else NEVER):
            scores, rows = flat.search(queries, k)
        return rows, scores

    return search


def certified(vectors: Matrix) -> Search:
    scan = ByteScan()
    scan.search(vectors, vectors[:1], 1, None)
    return lambda queries, k: scan.search(vectors, queries, k, None)


def compare(vectors: Matrix, queries: Matrix) -> dict[str, Any]:
    """Return both systems' CPU milliseconds for each batch and k."""
    start = time.process_time()
    ours = certified(vectors)
    found: dict[str, Any] = {"codes_s": round(time.process_time() - start, 2)}
    theirs = tuned_faiss(vectors)
    for batch in BATCHES:
        for k in KS:
            best, same = [np.inf, np.inf], 0.0
            for number in range(ROUNDS[batch]):
                part = np.take(queries, range(number * batch, (number + 1) * batch), axis=0, mode="wrap")
                rows = []
                for side, search in enumerate((ours, theirs)):
                    start = time.process_time()
                    rows.append(search(part, k)[0])
                    best[side] = min(best[side], time.process_time() - start)
                same += float((rows[0] == rows[1]).mean()) / ROUNDS[batch]
            found[f"batch={batch}, k={k}"] = {
                "certified_ms": round(best[0] * 1e3, 1),
                "faiss_ms": round(best[1] * 1e3, 1),
                "times_as_fast": round(best[1] / best[0], 2),
                "same_rows": round(same, 5),
            }
            print(batch, k, found[f"batch={batch}, k={k}"], flush=True)
    return found


def torch_blocks(vectors: Matrix, dtype: str) -> Search:
    import torch

    torch.set_num_threads(1)
    table = torch.from_numpy(vectors).to(getattr(torch, dtype))

    def search(queries: Matrix, k: int) -> tuple[Any, Any]:
        batch = torch.from_numpy(queries).to(table.dtype)
        best = torch.full((len(batch), k), -torch.inf)
        rows = torch.full((len(batch), k), -1)
        for start in range(0, len(table), BLOCK):
            scores = (batch @ table[start : start + BLOCK].T).float()
            late = (scores.amax(dim=1) > best[:, -1]).nonzero()[:, 0]
            if len(late):
                top, place = scores[late].topk(min(k, scores.shape[1]))
                joint = torch.cat([best[late], top], 1).topk(k)
                rows[late] = torch.cat([rows[late], place + start], 1).gather(1, joint.indices)
                best[late] = joint.values
        return rows.numpy(), best.numpy()

    return search


def numpy_blocks(vectors: Matrix) -> Search:
    def search(queries: Matrix, k: int) -> tuple[Any, Any]:
        best = np.full((len(queries), k), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), k), -1)
        for start in range(0, len(vectors), BLOCK):
            scores = queries @ vectors[start : start + BLOCK].T
            for q in np.flatnonzero(scores.max(axis=1) > best[:, -1]):
                joint = np.concatenate([best[q], scores[q]])
                first = np.argpartition(-joint, k - 1)[:k]
                first = first[np.argsort(-joint[first])]
                rows[q] = np.where(first < k, rows[q][np.minimum(first, k - 1)], first - k + start)
                best[q] = joint[first]
        return rows, best

    return search


def numkong_product(vectors: Matrix, dtype: Any) -> Search:
    """The matrix product alone, without selection or bound, and with one scale for all rows."""
    import numkong

    def coded(matrix: Matrix) -> Any:
        if dtype == "i8":
            return np.rint(matrix * (127 / np.abs(matrix).max())).astype(np.int8)
        return numkong.Tensor(matrix).astype("bfloat16")

    blocks = (coded(vectors[start : start + BLOCK]) for start in range(0, len(vectors), BLOCK))
    packed = [numkong.dots_pack(block) for block in blocks]

    def search(queries: Matrix, k: int) -> tuple[Any, Any]:
        asked = coded(queries)
        for block in packed:
            numkong.dots_packed(asked, block)
        return None, None

    return search


def libraries(vectors: Matrix, queries: Matrix, rows: int) -> dict[str, Any]:
    """Return CPU milliseconds of the alternatives that need none of our code, scaled to `rows`."""
    part = np.ascontiguousarray(vectors[:LIBRARY_ROWS])
    ways: dict[str, Callable[[], Search]] = {
        "numpy float32": lambda: numpy_blocks(part),
        "torch float32": lambda: torch_blocks(part, "float32"),
        "torch bfloat16": lambda: torch_blocks(part, "bfloat16"),
        "numkong int8, product alone": lambda: numkong_product(part, "i8"),
        "numkong bfloat16, product alone": lambda: numkong_product(part, "bf16"),
        "FAISS, tuned": lambda: tuned_faiss(part),
        "certified": lambda: certified(part),
    }
    found: dict[str, Any] = {}
    for name, make in ways.items():
        try:
            search = make()
            found[name] = {f"batch={b}": _least(search, queries[:b]) * rows / len(part) for b in (1, 64)}
        except Exception as error:  # a rival's failure to run here is a result, too
            found[name] = f"{type(error).__name__}: {error}"
        print(name, found[name], flush=True)
    return found


def _least(search: Search, queries: Matrix) -> float:
    return round(cpu_time(lambda: search(queries, 5), 4) * 1e3, 2)


def all_pairs(path: Path, rows: int, scan: bool) -> None:
    """Search `rows` vectors exactly for the top five of each of them, in batches of 1,000."""
    vectors = np.ascontiguousarray(np.load(path, mmap_mode="r")[:rows])
    search = certified(vectors) if scan else tuned_faiss(vectors)
    for start in range(0, rows, 1000):
        search(vectors[start : start + 1000], 5)


def keep(part: dict[str, Any]) -> None:
    """Write a part into the results; keep the others as earlier or concurrent runs left them."""
    print(record("flat", recorded("flat") | part, SEED), part, flush=True)


@benchmark(
    work=KEPT,
    rows=(1_000_000, "vectors"),
    all_pairs=150_000,
    parts=Commas(("libraries", "real", "random", "pairs", "faiss-pairs")),
)
def measured(options: Arguments) -> None:
    load_faiss().omp_set_num_threads(1)
    path, parts = real_vectors.prepare(options.work, options.rows), options.parts
    keep({"rows": options.rows, "dim": real_vectors.DIM, "scan": kernels.status("scan")})
    if {"libraries", "real"} & {*parts}:
        vectors, queries = np.load(path), real_vectors.queries()
        if "libraries" in parts:
            keep({"libraries, ms for all rows": libraries(vectors, queries, options.rows)})
        if "real" in parts:
            keep({"real": compare(vectors, queries)})
        del vectors
    if "random" in parts:
        hard = real_vectors.random_vectors(options.rows, 1)
        keep({"random": compare(hard, real_vectors.random_vectors(1000, 2))})
        del hard
    for part, name, scan in (("pairs", "certified", True), ("faiss-pairs", "FAISS, tuned", False)):
        if part in parts:
            cost = in_child(all_pairs, (path, options.all_pairs, scan))
            keep({f"all pairs of {options.all_pairs:,}, five best, {name}": asdict(cost)})
