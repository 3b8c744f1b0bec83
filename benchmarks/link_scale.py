"""How do the exact methods scale? Zipf pages of two languages, 2k to 115k × 230k; time and memory of each method.

A page of either language is a bag of terms: most are drawn from one Zipf law over the vocabulary, some from a few rare
terms of its own, which its counterpart shares through the dictionary (three translations per term). Each size and
method runs in its own process.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.support.common import record
from indexes.dtypes import Float32Array
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.assignment import margin
from linker.crosslingual.scoring.candidates import PagePairScorer, nearest
from linker.crosslingual.scoring.comparability import comparability
from linker.crosslingual.scoring.dense import Cosines
from linker.crosslingual.scoring.hapax import overlap

VOCABULARY = 150_000
TRANSLATIONS = 3
OWN_TERMS = 12  # rare terms that a page shares with its counterpart, as far as the dictionary goes
SIZES = ((2_000, 4_000), (6_500, 13_000), (20_000, 40_000), (115_000, 230_000))
DIM = 512
SEED = 0


def pages(n: int, length: int, seed: int, own: np.ndarray) -> Terms:
    """Make n pages of about `length` types: Zipf–Mandelbrot (shift 20) for all, and each page's own rare terms."""
    rng = np.random.default_rng(seed)
    mass = 1 / (np.arange(1, VOCABULARY + 1) + 20)
    cumulated = np.cumsum(mass / mass.sum())
    drawn = np.minimum(np.searchsorted(cumulated, rng.random((n, length), np.float32)), VOCABULARY - 1)
    columns = np.concatenate((drawn, own[:n]), axis=1).astype(np.int32)
    pointers = np.arange(0, columns.size + 1, columns.shape[1])
    counts = csr_array((np.ones(columns.size, np.int32), columns.ravel(), pointers), shape=(n, VOCABULARY))
    counts.sum_duplicates()
    return Terms(tuple(f"{i:06}" for i in range(VOCABULARY)), counts)


def dictionary() -> csr_array:
    """Translate each term by itself and by two others of about its frequency; the most frequent are known too."""
    rng = np.random.default_rng(SEED)
    base = np.repeat(np.arange(VOCABULARY), TRANSLATIONS)
    near = base + np.where(
        np.arange(base.size) % TRANSLATIONS == 0, 0, rng.integers(-base // 4 - 3, base // 4 + 4)
    )
    near = np.clip(near, 0, VOCABULARY - 1)
    links = csr_array((np.ones(base.size, np.float32), (base, near)), shape=(VOCABULARY, VOCABULARY))
    links.data[:] = 1
    return links


def collections(n: int, m: int, length: int) -> tuple[Terms, Terms]:
    rng = np.random.default_rng(SEED)
    own = rng.integers(1000, VOCABULARY, (m, OWN_TERMS))
    return pages(n, length, 1, own), pages(m, length, 2, own)  # source i and target i share their own terms


def scorer_of(method: str, n: int, m: int) -> PagePairScorer:
    if method == "encoder":
        rng = np.random.default_rng(SEED)
        sides = [rng.standard_normal((size, DIM), np.float32) for size in (n, m)]
        sides[0] = (sides[0] + 0.5 * sides[1][:n]).astype(np.float32)
        return Cosines(*(side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides))
    if method == "hapax":  # few strings of a page are the same in the other language
        return overlap(*collections(n, m, 60))
    source, target = collections(n, m, 300)
    return comparability(source, target, dictionary())


@dataclass(frozen=True)
class Part:
    """The first `rows` sources of a scorer, against all its targets."""

    whole: PagePairScorer
    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.whole.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        return self.whole.block(begin, end)


def measure(method: str, size: int, m: int, share: float) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    n = int(size * share)
    scorer = Part(scorer_of(method, size, m), n)
    prepared, prepared_cpu = time.perf_counter() - began, time.process_time() - cpu
    source_ids, target_ids = ([f"{p}{i:06}" for i in range(size)] for p, size in (("s", n), ("t", m)))
    found = nearest(scorer, source_ids, target_ids)
    ranked = margin(found, source_ids, target_ids) if method != "hapax" else found.candidates
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    with Path("/proc/self/status").open(encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {
        "method": method,
        "source_pages": size,
        "target_pages": m,
        "sources_compared": n,
        "prepare_cpu_s": round(prepared_cpu, 1),
        "prepare_s": round(prepared, 1),
        "cpu_s": round(cpu_seconds, 1),
        "wall_s": round(seconds, 1),
        "cpu_ns_per_pair": round((cpu_seconds - prepared_cpu) / n / m * 1e9, 2),
        "peak_gib": round(peak / 2**20, 2),
        "success_1": round(float((ranked.targets[:, 0] == np.arange(n)).mean()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=20_000, help="most source pages")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the sources that the largest size compares"
    )
    parser.add_argument("--methods", default="hapax,dictionary,encoder")
    options = parser.parse_args()
    rows = []
    for method in options.methods.split(","):
        for n, m in SIZES:
            if n <= options.largest:
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    share = options.share if n == options.largest else 1.0
                    rows.append(pool.submit(measure, method, n, m, share).result())
                print(rows[-1], flush=True)
                record("link_scale", {"rows": rows}, seed=SEED)  # the largest takes long: keep what there is


if __name__ == "__main__":
    main()
