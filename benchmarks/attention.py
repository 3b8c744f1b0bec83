"""Does attention learn anything beyond its starting weights? One attempt of each kind, on both sets.

`python -m benchmarks.attention --work FOLDER` runs what FOLDER lacks and records benchmarks/results/attention.json:
reciprocal ranks among all documents by the cosine alone, and paired randomisation tests against the attempt's own
start. Settings were chosen on dev. A trial is one DATA/ATTEMPT/SEED; `--trials` runs some of them, `--stage` the
ranking stage, and `--report` only records.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.support.attention_lists import learn_lists, teach
from benchmarks.support.attention_stage import stage
from benchmarks.support.attention_training import Data, Recipe, judge, learn, read
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.encoders.configs import PRESETS
from linker.evaluation.significance import randomisation
from linker.training.compact_star import CompactStar

SETS = ("tweets2claims", "statements2articles")
SPLITS = ("dev", "test")
CONFIG = PRESETS["recommended"]


@dataclass(frozen=True)
class Attempt:
    """How a star is trained: the attempt it starts from, its recipe, and the baseline it has to beat."""

    kind: str
    says: str
    start: str = "star"
    against: str = "star"
    keys_of: str = ""  # the inputs of the keys and α are those of this attempt
    lists: str = ""  # "links" or "sentences": learns from the ranker's lists of these queries
    size: int = 6  # candidates per list
    soft: float = 1.0  # weight of the teacher
    recipe: dict[str, Any] = field(default_factory=dict)
    # differences on statements, where an epoch has 28 steps
    statements: dict[str, Any] = field(default_factory=dict)


MEAN = {"mean_only": True, "stream": 7}
FROZEN = {"vectors": 0.0, "cloze": 124, "epochs": 8}
SHORT = {"cloze": 0, "epochs": 3}
KEYS = {"inputs": 1e-2, "alpha": 5e-3}
HELD = {**FROZEN, **KEYS, "attention": 1e-3, "links": "second"}
LISTS = {"vectors": 5e-4, "attention": 1e-4, **KEYS, "keys": False, "batch": 96, "epochs": 1, "cloze": 0}
INPUTS = {**FROZEN, "inputs": 1e-2}
HALF = "star of half"
ATTEMPTS = {
    "mean": Attempt("", "mean of vectors, learned from links and documents", "", "", recipe=MEAN),
    "star": Attempt("", "its star, untrained", "mean", "mean", recipe={"epochs": 0}),
    "mean of half": Attempt(
        "", "mean of vectors, from half of the links", "", "", recipe={**MEAN, "links": "first"}
    ),
    "star of half": Attempt("", "its star, untrained", "mean of half", "mean of half", recipe={"epochs": 0}),
    "contrast": Attempt(
        "a", "vectors learned under the contrast from the pretrained ones on", "",
        recipe={"weights": False, "stream": 7}, statements={"cloze": 512, "epochs": 6},
    ),
    "attention": Attempt(
        "a", "attention alone, on all links", recipe={**FROZEN, "attention": 1e-3, "alpha": 5e-3}, statements=SHORT
    ),
    "held back": Attempt(
        "a", "attention, α and inputs of keys, on the half of the links that the vectors have not seen", HALF, HALF,
        recipe=HELD, statements=SHORT,
    ),
    "inputs": Attempt("c", "idf, count and position in the keys", recipe={**FROZEN, **KEYS}, statements=SHORT),
    "inputs, held back": Attempt(
        "c", "the same, on the half of the links that the vectors have not seen", HALF, HALF,
        recipe={**FROZEN, **KEYS, "links": "second"}, statements=SHORT,
    ),
    "inputs, crossed": Attempt(
        "c", "nothing further: vectors from all links, inputs of the keys and α from those held back",
        keys_of="inputs, held back", recipe={"epochs": 0},
    ),
    "idf": Attempt("c", "idf alone in the keys", recipe={**FROZEN, **KEYS, "used": 1}, statements=SHORT),
    "lists": Attempt(
        "b", "everything, from the ranker's scores of each text's candidates and from the links", lists="links",
        recipe=LISTS,
    ),
    "lists, labels": Attempt(
        "b", "the same candidates without the ranker's scores", lists="links", soft=0.0, recipe=LISTS
    ),
    "lists, four epochs": Attempt(
        "b", "the ranker's scores and the links, longer", lists="links", recipe={**LISTS, "epochs": 4}
    ),
    "sentences": Attempt(
        "b", "everything, from the ranker's scores of sentences' candidates, no links", lists="sentences",
        recipe=LISTS,
    ),
    "α 1.01": Attempt(
        "f", "the same with α fixed at 1.01", against="inputs", recipe={**INPUTS, "fixed_alpha": 1.01}, statements=SHORT
    ),
    "α 2": Attempt(
        "f", "the same with α fixed at 2", against="inputs", recipe={**INPUTS, "fixed_alpha": 2.0}, statements=SHORT
    ),
    "α 1.5": Attempt(
        "f", "the same with α as it starts, at 1.5", against="inputs", recipe={**INPUTS, "fixed_alpha": 1.5},
        statements=SHORT,
    ),
}  # fmt: skip


def run_trials(wanted: list[str], work: Path) -> None:
    sets: dict[str, Data] = {}
    for trial in wanted:
        name, attempt, seed = trial.split("/")
        if not (work / name / f"{attempt}-{seed}.npz").exists():
            data = sets.get(name) or sets.setdefault(name, read(name, work))
            run(data, attempt, int(seed), work)
        told = _told(work / name, attempt, [int(seed)], ("dev",))
        print(trial, json.dumps(told), file=sys.stderr, flush=True)


def run(data: Data, name: str, seed: int, work: Path) -> None:
    """Train an attempt, and keep its weights and the reciprocal ranks of dev and test."""
    attempt, folder, start = ATTEMPTS[name], work / data.case.name, time.process_time()
    recipe = recipe_of(attempt, data.case.name, seed)
    model = load(data, attempt.start, seed, work)
    if attempt.keys_of:
        taken = load(data, attempt.keys_of, seed, work)
        model.inputs, model.relay.raw_alpha = taken.inputs, taken.relay.raw_alpha
    losses: list[float] = []
    if attempt.lists:
        lists = teach(data, work)[("links", "sentences").index(attempt.lists)]
        if recipe.links != "all":
            lists = lists.of({text for text, _ in data.links(recipe.links)})
        losses = learn_lists(model, data, lists, recipe, size=attempt.size, soft=attempt.soft)
    elif recipe.epochs:
        losses = learn(model, data, recipe)
    trained = time.process_time() - start
    model.mean_only, model.fixed_alpha, model.used = recipe.mean_only, recipe.fixed_alpha, recipe.used
    ranks = judge(model, data, SPLITS)
    torch.save(model.state_dict(), folder / f"{name}-{seed}.pt")
    about = {
        "losses": losses, "cpu_s": round(trained, 1), "alpha": model.alpha().detach().tolist(),
        "inputs": model.inputs.detach().tolist(),
    }  # fmt: skip
    np.savez(folder / f"{name}-{seed}.npz", about=json.dumps(about), **ranks)  # type: ignore[arg-type]


def recipe_of(attempt: Attempt, name: str, seed: int) -> Recipe:
    """Return an attempt's recipe on a set."""
    changes = attempt.statements if name == "statements2articles" else {}
    return Recipe(**{**attempt.recipe, **changes}, seed=seed)


def load(data: Data, start: str, seed: int, work: Path) -> CompactStar:
    """Return a star with the weights of an attempt, or with the pretrained vectors."""
    model = CompactStar(data.vectors, CONFIG, data.idf, seed)
    if start:
        model.load_state_dict(torch.load(work / data.case.name / f"{start}-{seed}.pt", weights_only=True))
    return model


def _half(name: str, work: Path) -> tuple[CompactStar, Data]:
    """Return the star whose vectors learned from half of the links, and the set."""
    data = read(name, work)
    return load(data, HALF, 0, work), data


def report(work: Path) -> dict[str, Any]:
    """Return the results so far: each attempt's mean over seeds, and its lead over its baseline."""
    results: dict[str, Any] = {}
    for data in SETS:
        for name, attempt in ATTEMPTS.items():
            seeds = [s for s in range(10) if (work / data / f"{name}-{s}.npz").exists()]
            if seeds:
                row = {"kind": attempt.kind, "says": attempt.says, "seeds": len(seeds)}
                results.setdefault(data, {})[name] = row | _told(work / data, name, seeds, SPLITS)
        if (work / data / "stage.json").exists():
            results.setdefault("stage", {})[data] = json.loads((work / data / "stage.json").read_text())
    return results


def _told(folder: Path, name: str, seeds: list[int], splits: tuple[str, ...]) -> dict[str, Any]:
    """Return MRR, S@1 and the MRR lead over `against` with its p-value, from each query's mean over seeds."""
    against = ATTEMPTS[name].against
    about = json.loads(str(np.load(folder / f"{name}-{seeds[0]}.npz")["about"]))
    row: dict[str, Any] = {key: about[key] for key in ("cpu_s", "alpha", "inputs", "losses")}
    row["alpha"] = [round(a, 3) for a in row["alpha"]]
    row["inputs"] = [[round(x, 3) for x in line] for line in row["inputs"]]
    for split in splits:
        found = np.array([np.load(folder / f"{name}-{s}.npz")[split] for s in seeds])
        row[split] = {"mrr": round(float(found.mean()), 4), "s1": round(float((found == 1).mean()), 4)}
        row[split]["by_seed"] = [round(float(f.mean()), 4) for f in found]
        if against and all((folder / f"{against}-{s}.npz").exists() for s in seeds):
            before = np.array([np.load(folder / f"{against}-{s}.npz")[split] for s in seeds])
            p = randomisation(found.mean(axis=0), before.mean(axis=0))
            row[split] |= {
                "against": against,
                "lead": round(float((found - before).mean()), 4),
                "p": round(p, 4),
            }
    return row


@benchmark(
    seed=0,
    work=(Path, "folder that keeps data, models and ranks"),
    trials=([], "DATA/ATTEMPT/SEED: run these and record nothing"),
    stage=([], "the ranking stage of these sets; records nothing"),
    report=(False, "record what is there, run nothing"),
)
def measured(options: Arguments) -> Results | None:
    torch.set_num_threads(1)
    work = options.work
    if not options.report and not options.stage:
        run_trials(options.trials or [f"{data}/{name}/0" for data in SETS for name in ATTEMPTS], work)
    for name in options.stage:
        figures = stage(*_half(name, work), work, "second")
        (work / name / "stage.json").write_text(json.dumps(figures))
        print(json.dumps(figures, indent=1), file=sys.stderr, flush=True)
    return None if options.trials or options.stage else report(work)
