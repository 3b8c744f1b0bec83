"""How fast is the evaluation of a run, including reading the file? Compared with pytrec_eval-terrier and ranx.

`python -m benchmarks.evaluate` → benchmarks/results/evaluate.json; `--quick` for small sizes. Speed is CPU time, the
minimum of several runs in one process; ranx compiles before the clock starts. Memory is the increase in a fresh
process's peak from one evaluation.
"""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import cpu_time, fresh, memory
from benchmarks.support.harness import Arguments, Results, benchmark

MEASURES = ["map", "recip_rank", "success.1,5", "ndcg_cut.10"]
RANX = ["map", "mrr", "hit_rate@1", "hit_rate@5", "ndcg@10"]
SIZES = {"150000x5": (150_000, 5), "10000x1000": (10_000, 1000)}
QUICK = {"3000x5": (3000, 5), "200x1000": (200, 1000)}
SEED = 7


def write_case(folder: Path, topics: int, depth: int) -> tuple[Path, Path]:
    """Write a run with distinct numeric ids, scores falling by rank, and one relevant document per topic.

    That matches this project's data (a post and its article); four in five are retrieved.
    """
    rng = np.random.default_rng(SEED)
    folder.mkdir(exist_ok=True, parents=True)
    with (folder / "run").open("w") as run, (folder / "qrels").open("w") as qrels:
        for t in range(topics):
            ids = rng.choice(5_000_000, depth, replace=False)
            scores = -np.sort(-rng.gamma(4, 4, depth))
            run.writelines(f"{t} Q0 doc{ids[i]} {i + 1} {scores[i]:.9g} bench\n" for i in range(depth))
            is_found = rng.random() < 0.8
            found, lost = ids[rng.integers(0, depth)], rng.integers(0, 5_000_000)
            qrels.write(f"{t} 0 doc{found if is_found else lost} {rng.integers(1, 3)}\n")
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
    before = memory("VmHWM")
    TOOLS[tool](qrels, run)
    return round(memory("VmHWM") - before, 1)


def measure(qrels: Path, run: Path, repeats: int) -> dict[str, Any]:
    results: dict[str, Any] = {}
    figures = {}
    for tool, run_tool in TOOLS.items():
        evaluate = functools.partial(run_tool, qrels, run)
        figures[tool] = evaluate()
        results[tool] = {
            "cpu_s": round(cpu_time(evaluate, min(repeats, 2) if tool == "ranx" else repeats), 3)
        }
        results[tool]["growth_mib"] = fresh(growth, tool, qrels, run)
        print(run.parent.name, tool, results[tool], flush=True)
    differences = (abs(v - figures["pytrec_eval"][k]) for k, v in figures["linker"].items())
    return results | {"largest_difference_to_pytrec_eval": max(differences)}


@benchmark(seed=SEED, work=None, quick=(False, "small sizes; nothing is recorded"))
def measured(options: Arguments) -> Results | None:
    results: Results = {}
    for name, (topics, depth) in (QUICK if options.quick else SIZES).items():
        repeats = 10 if topics * depth < 1_000_000 else 2  # short runs vary more
        results[name] = measure(*write_case(options.work / name, topics, depth), repeats)
    return None if options.quick else results
