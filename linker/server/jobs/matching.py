"""The job `match`: find the candidates of every row of a review, decided together as in `linker link`, for a file."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.progress import Progress, listening
from linker.crosslingual.pages.pages import UNKNOWN
from linker.crosslingual.sides import Side
from linker.crosslingual.together import candidate_lists, rank
from linker.engine.engine import Engine
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.population import Population
from linker.review.project import Project
from linker.review.rows.candidates import Match, Matches, save, stamp
from linker.review.rows.states import known_links, states
from linker.review.settings import Settings
from linker.scoring.probability.calibration import Calibration
from linker.scoring.probability.competition import Lists
from linker.scoring.probability.deciding import Known, decide

KEPT = 10  # maximum number of candidates of a row
SPARE = 10  # extra candidates, since a filter may exclude some
BATCH = 64  # rows searched at a time
SEARCHING = "finding candidates"

Candidates = dict[str, tuple[Match, ...]]


def specification(project: Project, ledger: Ledger) -> dict[str, Any]:
    """Return the specification for `run` from a review's current state; the job itself never opens the ledger."""
    seeds = ledger.seeds
    return {
        "index": str(project.index),
        "out": str(project.matches),
        "seeds": [dataclasses.asdict(seed) for seed in seeds],
        "settings": dict(ledger.settings),
        "links": known_links(states(seeds, {}, ledger.judgements(rows=True))),
    }


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Find the candidates of the rows `spec["seeds"]` in the index `spec["index"]`, and write them to `spec["out"]`.

    If the index has a calibration, the candidates come from its own search, to which the calibration applies.
    Otherwise all rows are decided together, given the matches that people have found (`spec["links"]`). Raises
    InputError.
    """
    seeds, settings = [Seed(**seed) for seed in spec["seeds"]], Settings.of(spec["settings"])
    with Engine.open(Path(spec["index"])) as engine, listening(tell):
        population = Population(engine.collection.rows, seeds, settings)
        marked = stamp(seeds, settings.where, engine.collection.manifest.generation)
        calibration = _calibration(engine)
        if calibration is not None:
            candidates = _search(engine, seeds, tell)
            probabilities, right = calibration.held.tolist(), calibration.right.tolist()
            matches = Matches(marked, candidates, 0, tuple(probabilities), tuple(right))
        else:
            links = [(seed, id_) for seed, id_ in spec["links"] if id_ in engine]
            candidates = _decide(engine, seeds, links)
            matches = Matches(marked, candidates, len({seed for seed, _ in links}))
    save(Path(spec["out"]), dataclasses.replace(matches, rows=_restrict(matches.rows, population)))
    return {"rows": len(seeds)}


def _calibration(engine: Engine) -> Calibration | None:
    """Return the calibration of an index, or None if it has no valid one."""
    try:
        return engine.calibration
    except InputError:
        return None


def _search(engine: Engine, seeds: Sequence[Seed], tell: Progress) -> Candidates:
    """Return the hits of the index's own search, with P(link) by its calibration."""
    candidates: Candidates = {}
    for start in range(0, len(seeds), BATCH):
        part = seeds[start : start + BATCH]
        answer = engine.search([seed.full_text for seed in part], KEPT + SPARE, stored_ranker=False)
        if answer.probabilities is None:
            raise InputError(
                "; ".join(answer.notes) or "the index gives no probabilities: calibrate it again"
            )
        for seed, hits, probabilities in zip(part, answer.hits, answer.probabilities, strict=True):
            candidates[seed.id] = _matches(hits.ids, probabilities.tolist())
        tell(SEARCHING, start + len(part), len(seeds))
    return candidates


def _decide(engine: Engine, seeds: Sequence[Seed], links: Sequence[tuple[str, str]]) -> Candidates:
    """Return the candidates of all rows; rows with a known match are decided alone, the others together."""
    documents = {seed.id: Document(seed.id, seed.text, seed.title) for seed in seeds}
    source = Side((), documents, UNKNOWN)
    linked = list(dict.fromkeys(seed for seed, _ in links))
    unlinked = [seed.id for seed in seeds if seed.id not in set(linked)]
    if not unlinked:  # nothing to decide together: each row is decided alone
        unlinked, linked, links = linked, [], []
    lists, known, _ = candidate_lists(engine, source, unlinked, links, 0)
    candidates = _rank(engine, unlinked, lists, known)
    return candidates | _rank(engine, linked, known.lists, None) if known else candidates


def _rank(engine: Engine, names: Sequence[str], lists: Lists, known: Known | None) -> Candidates:
    ids = engine.collection.rows.ids
    best = rank(lists, decide(lists, known), names, ids)
    candidates = {}
    for name, rows, scores in zip(names, best.targets, best.scores, strict=True):
        valid = rows >= 0
        candidates[name] = _matches([ids[row] for row in rows[valid].tolist()], scores[valid].tolist())
    return candidates


def _matches(ids: Iterable[str], probabilities: Iterable[float]) -> tuple[Match, ...]:
    pairs = list(zip(ids, np.nan_to_num(list(probabilities)).tolist(), strict=False))
    return tuple(Match(id_, p) for id_, p in pairs[: KEPT + SPARE])


def _restrict(candidates: Mapping[str, Sequence[Match]], population: Population) -> Candidates:
    pairs = [(seed, match) for seed, matches in candidates.items() for match in matches]
    inside = population.holds([(seed, match.id) for seed, match in pairs])
    remaining: dict[str, list[Match]] = {seed: [] for seed in candidates}
    for (seed, match), is_inside in zip(pairs, inside, strict=True):
        if is_inside and len(remaining[seed]) < KEPT:
            remaining[seed].append(match)
    return {seed: tuple(matches) for seed, matches in remaining.items()}
