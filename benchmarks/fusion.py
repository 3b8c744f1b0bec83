"""Is reciprocal rank fusion on arrays worth it? 10,000 queries × (100 + 100), compared with pure Python and ranx.

Target: three times as fast as pure Python. Two forms: row numbers (embedded backends) and string ids (others).
The pure-Python version returns the same results: the top 100 (row, score) pairs, or `Hits`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from benchmarks.support.common import cpu_time, parse_options, record
from indexes.fusion import Fusion, Ranking, fuse, fuse_hits
from indexes.interface import Hits

EQUAL = Fusion("rrf", (0.5, 0.5))
POOL, DEPTH, CORPUS, SEED = 300, 100, 20_000, 0  # two draws of 100 from 300: a third is in both


def make_sides(queries: int) -> list[Ranking]:
    """Return two sides that draw from the same pool of documents around a random place in the corpus."""
    rng = np.random.default_rng(SEED)
    first = rng.integers(0, CORPUS - POOL, (queries, 1))
    sides = []
    for _ in range(2):
        rows = np.argsort(rng.random((queries, POOL)), axis=1)[:, :DEPTH] + first
        scores = -np.sort(-rng.random((queries, DEPTH)).astype(np.float32), axis=1)
        sides.append((rows.astype(np.int64), scores))
    return sides


def make_hits(side: Ranking) -> list[Hits]:
    names = [f"doc{row:06d}" for row in range(CORPUS)]
    return [Hits(tuple([names[r] for r in row]), s) for row, s in zip(side[0].tolist(), side[1], strict=True)]


def python_rows(
    first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]
) -> list[list[tuple[int, float]]]:
    """Fuse lists of rows: a dictionary that adds up, then a sort."""
    gains = [0.5 / (60 + rank) for rank in range(1, DEPTH + 1)]
    fused = []
    for a, b in zip(first, second, strict=True):
        total = dict(zip(a, gains, strict=True))
        for row, gain in zip(b, gains, strict=True):
            total[row] = total.get(row, 0.0) + gain
        fused.append(sorted(total.items(), key=itemgetter(1), reverse=True)[:DEPTH])
    return fused


def python_hits(first: Sequence[Hits], second: Sequence[Hits]) -> list[Hits]:
    """Fuse hits: a dictionary that adds up, then a sort."""
    gains = [0.5 / (60 + rank) for rank in range(1, DEPTH + 1)]
    fused = []
    for a, b in zip(first, second, strict=True):
        total = dict(zip(a.ids, gains, strict=True))
        for id_, gain in zip(b.ids, gains, strict=True):
            total[id_] = total.get(id_, 0.0) + gain
        best = sorted(total, key=total.__getitem__, reverse=True)[:DEPTH]
        fused.append(Hits(tuple(best), np.array([total[id_] for id_ in best], dtype=np.float32)))
    return fused


def ranx_rrf(hits: Sequence[Sequence[Hits]]) -> Callable[[], object] | None:
    """Return a call of ranx's rrf on the same hits, compiled already; None where ranx is not installed."""
    if importlib.util.find_spec("ranx") is None:
        return None
    from ranx import Run
    from ranx.fusion import rrf

    runs = [
        Run({f"q{q}": dict(zip(h.ids, h.scores.tolist(), strict=True)) for q, h in enumerate(side)})
        for side in hits
    ]
    rrf(runs)
    return lambda: rrf(runs)


def check(sides: Sequence[Ranking], hits: Sequence[Sequence[Hits]]) -> None:
    """Fail unless the four fusions give the same scores."""
    expected = [[s for _, s in answer] for answer in python_rows(sides[0][0].tolist(), sides[1][0].tolist())]
    np.testing.assert_allclose(fuse(sides, EQUAL, DEPTH)[1], expected, rtol=1e-6)
    for answers in (fuse_hits(hits, EQUAL, DEPTH), python_hits(*hits)):
        np.testing.assert_allclose([h.scores for h in answers], expected, rtol=1e-6)


def main() -> None:
    args = parse_options(__doc__, queries=10_000, repeats=7)
    sides = make_sides(args.queries)
    hits = [make_hits(side) for side in sides]
    check(sides, hits)
    lists = [side[0].tolist() for side in sides]
    runs: dict[str, Callable[[], object]] = {
        "rows, pure Python": lambda: python_rows(*lists),
        "rows, fuse": lambda: fuse(sides, EQUAL, DEPTH),
        "hits, pure Python": lambda: python_hits(*hits),
        "hits, fuse_hits": lambda: fuse_hits(hits, EQUAL, DEPTH),
        "rows, fuse minmax": lambda: fuse(sides, Fusion("minmax"), DEPTH),
        "rows, fuse max": lambda: fuse(sides, Fusion("max"), DEPTH),
        "rows, fuse zscore": lambda: fuse(sides, Fusion("zscore"), DEPTH),
    }
    if (ranx := ranx_rrf(hits)) is not None:
        runs["ids, ranx rrf (compiled before, all threads)"] = ranx
    seconds = {name: round(cpu_time(run, args.repeats), 4) for name, run in runs.items()}
    ratios = {form: round(seconds[f"{form}, pure Python"] / seconds[fast], 2)
              for form, fast in (("rows", "rows, fuse"), ("hits", "hits, fuse_hits"))}  # fmt: skip
    for name, value in seconds.items():
        print(f"{name:<46} {value:8.4f} CPU s")
    print("times as fast as pure Python:", ratios)
    record(
        "fusion", {"queries": args.queries, "depth": DEPTH, "cpu_seconds": seconds, "speedup": ratios}, SEED
    )


if __name__ == "__main__":
    main()
