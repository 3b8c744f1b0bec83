"""How fast is the evaluation of a run, including reading the file? Compared with pytrec_eval-terrier and ranx.

`python -m benchmarks.evaluate` → benchmarks/results/evaluate.json; `--quick` for small sizes, `--variants` for more
cases. Speed is CPU time, the minimum of several runs in one process; ranx compiles before the clock starts. Memory is
the increase in a fresh process's peak from one evaluation.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import _memory, cpu_time, record
from benchmarks.support.harness import Arguments, Results, benchmark

MEASURES = ["map", "recip_rank", "success.1,5", "ndcg_cut.10"]
RANX = ["map", "mrr", "hit_rate@1", "hit_rate@5", "ndcg@10"]
SIZES = {"150000x5": (150_000, 5), "10000x1000": (10_000, 1000)}
QUICK = {"3000x5": (3000, 5), "200x1000": (200, 1000)}
VARIANTS: dict[str, dict[str, Any]] = {
    "scores of 17 digits": {"form": ""},
    "lines shuffled inside topics": {"shuffled": True},
    "three judgements": {"judged": 3},
}
SEED = 7


def write_case(
    folder: Path, topics: int, depth: int, form: str = ".9g", shuffled: bool = False, judged: int = 1
) -> tuple[Path, Path]:
    """Write a run with distinct numeric ids, scores falling by rank, and `judged` relevant documents per topic.

    One relevant document matches this project's data (a post and its article); four in five are retrieved.
    """
    if (folder / "qrels").exists():
        return folder / "qrels", folder / "run"
    rng = np.random.default_rng(SEED)
    folder.mkdir(exist_ok=True, parents=True)
    with (folder / "run").open("w") as run, (folder / "qrels").open("w") as qrels:
        for t in range(topics):
            ids = rng.choice(5_000_000, depth, replace=False)
            scores = -np.sort(-rng.gamma(4, 4, depth))
            order = rng.permutation(depth) if shuffled else range(depth)
            run.write("".join(f"{t} Q0 doc{ids[i]} {i + 1} {scores[i]:{form}} bench\n" for i in order))
            here = rng.random(judged) < 0.8
            found, lost = ids[rng.integers(0, depth, judged)], rng.integers(0, 5_000_000, judged)
            wanted = set(np.where(here, found, lost).tolist())
            qrels.write("".join(f"{t} 0 doc{d} {rng.integers(1, 3)}\n" for d in sorted(wanted)))
    return folder / "qrels", folder / "run"


def by_linker(qrels: Path, run: Path) -> dict[str, float]:
    from linker.evaluation import evaluate

    return dict(evaluate(qrels, run, MEASURES, complete=False))  # averaged over topics, as pytrec_eval does


def by_pytrec_eval(qrels: Path, run: Path) -> dict[str, float]:
    import pytrec_eval

    with qrels.open() as q, run.open() as r:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(q), set(MEASURES))
        values = evaluator.evaluate(pytrec_eval.parse_run(r))
    names = next(iter(values.values()))
    return {n: pytrec_eval.compute_aggregated_measure(n, [v[n] for v in values.values()]) for n in names}


def by_ranx(qrels: Path, run: Path) -> dict[str, float]:
    import ranx

    judged, answers = ranx.Qrels.from_file(str(qrels), kind="trec"), ranx.Run.from_file(str(run), kind="trec")
    return {k: float(v) for k, v in ranx.evaluate(judged, answers, RANX).items()}


TOOLS: dict[str, Callable[[Path, Path], dict[str, float]]] = {
    "linker": by_linker,
    "pytrec_eval": by_pytrec_eval,
    "ranx": by_ranx,
}


def growth(tool: str, qrels: Path, run: Path) -> float:
    """Return the MiB by which one evaluation raises this process's peak, after all imports and compilation."""
    with tempfile.TemporaryDirectory() as folder:
        TOOLS[tool](*write_case(Path(folder), 20, 5))
    before = _memory("VmHWM")
    TOOLS[tool](qrels, run)
    return round(_memory("VmHWM") - before, 1)


def measure(qrels: Path, run: Path, repeats: int, tools: list[str], peaks: bool = True) -> dict[str, Any]:
    results: dict[str, Any] = {"run_mib": round(run.stat().st_size / 2**20, 1)}
    figures = {}
    for tool in tools:
        evaluate = functools.partial(TOOLS[tool], qrels, run)
        figures[tool] = evaluate()
        results[tool] = {
            "cpu_s": round(cpu_time(evaluate, min(repeats, 2) if tool == "ranx" else repeats), 3)
        }
        if peaks:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                results[tool]["growth_mib"] = pool.submit(growth, tool, qrels, run).result()
        print(run.parent.name, tool, results[tool], flush=True)
    for tool in tools[1:]:
        results[f"times_faster_than_{tool}"] = round(results[tool]["cpu_s"] / results["linker"]["cpu_s"], 2)
    if "pytrec_eval" in tools:
        theirs = figures["pytrec_eval"]
        mine = figures["linker"]
        results["largest_difference_to_pytrec_eval"] = max(abs(v - theirs[k]) for k, v in mine.items())
    return results


def sizes(folder: Path, quick: bool, variants: bool) -> dict[str, Any]:
    """Measure every size, and with `variants` other score widths, line orders and judgements."""
    results: dict[str, Any] = {}
    for name, (topics, depth) in (QUICK if quick else SIZES).items():
        repeats = 10 if topics * depth < 1_000_000 else 2  # short runs vary more
        results[name] = measure(*write_case(folder / name, topics, depth), repeats, list(TOOLS))
        for label, how in (VARIANTS if variants else {}).items():
            case = write_case(folder / f"{name} {label}", topics, depth, **how)
            results[f"{name}, {label}"] = measure(*case, 1, ["linker", "pytrec_eval"], peaks=False)
    return results


@benchmark(
    seed=SEED,
    quick=False,
    variants=(False, "also other scores, orders and judgements"),
    cases=(Path | None, "keep the generated files here for the next time"),
)
def measured(options: Arguments) -> Results | None:
    with tempfile.TemporaryDirectory() as folder:
        results = sizes(options.cases or Path(folder), options.quick, options.variants)
    if options.quick:
        print(record("evaluate_quick", results, SEED))
        return None
    return results
