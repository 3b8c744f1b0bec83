"""The job `match`: find the candidates of every row of a review, decided together as in `linker link`, for a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.progress import Progress, listening
from linker.crosslingual.sides import UNKNOWN, Side
from linker.crosslingual.together import candidate_lists, rank
from linker.engine.engine import Engine
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.population import Population
from linker.review.project import Project
from linker.review.rows.kept import Match, Matches, save, stamp
from linker.review.rows.states import known_links, states
from linker.review.settings import Settings
from linker.scoring.probability.calibration import Calibration
from linker.scoring.probability.competition import Lists
from linker.scoring.probability.deciding import Known, decide

KEPT = 10  # maximum number of candidates of a row
SPARE = 10  # extra candidates, since a filter may exclude some
BATCH = 64  # rows searched at a time
SEARCHING = "finding candidates"

Found = dict[str, tuple[Match, ...]]


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
            found = _searched(engine, seeds, tell)
            held, right = calibration.held.tolist(), calibration.right.tolist()
            matches = Matches(marked, found, 0, tuple(held), tuple(right))
        else:
            links = [(seed, id_) for seed, id_ in spec["links"] if id_ in engine]
            found = _together(engine, seeds, links)
            matches = Matches(marked, found, len({seed for seed, _ in links}))
    save(Path(spec["out"]), dataclasses.replace(matches, rows=_inside(matches.rows, population)))
    return {"rows": len(seeds)}


def _calibration(engine: Engine) -> Calibration | None:
    """Return the calibration of an index, or None if it has no valid one."""
    try:
        return engine.calibration
    except InputError:
        return None


def _searched(engine: Engine, seeds: Sequence[Seed], tell: Progress) -> Found:
    """Return the hits of the index's own search, with P(link) by its calibration."""
    found: Found = {}
    for start in range(0, len(seeds), BATCH):
        part = seeds[start : start + BATCH]
        answer = engine.search([seed.full_text for seed in part], KEPT + SPARE, stored_ranker=False)
        if answer.probabilities is None:
            raise InputError(
                "; ".join(answer.notes) or "the index gives no probabilities: calibrate it again"
            )
        for seed, hits, said in zip(part, answer.hits, answer.probabilities, strict=True):
            found[seed.id] = _matches(hits.ids, said.tolist())
        tell(SEARCHING, start + len(part), len(seeds))
    return found


def _together(engine: Engine, seeds: Sequence[Seed], links: Sequence[tuple[str, str]]) -> Found:
    """Return the candidates of all rows; rows with a known match are decided alone, the others together."""
    documents = {seed.id: Document(seed.id, seed.text, seed.title) for seed in seeds}
    source = Side(Path(), documents, UNKNOWN)
    linked = list(dict.fromkeys(seed for seed, _ in links))
    left = [seed.id for seed in seeds if seed.id not in set(linked)]
    if not left:  # nothing to decide together: each row is decided alone
        left, linked, links = linked, [], []
    lists, known, _ = candidate_lists(engine, source, left, links, 0)
    found = _ranked(engine, left, lists, known)
    return found | _ranked(engine, linked, known.lists, None) if known else found


def _ranked(engine: Engine, names: Sequence[str], lists: Lists, known: Known | None) -> Found:
    ids = engine.collection.rows.ids
    best = rank(lists, decide(lists, known), names, ids)
    found = {}
    for name, rows, scores in zip(names, best.targets, best.scores, strict=True):
        kept = rows >= 0
        found[name] = _matches([ids[row] for row in rows[kept].tolist()], scores[kept].tolist())
    return found


def _matches(ids: Iterable[str], probabilities: Iterable[float]) -> tuple[Match, ...]:
    pairs = list(zip(ids, np.nan_to_num(list(probabilities)).tolist(), strict=False))
    return tuple(Match(id_, p) for id_, p in pairs[: KEPT + SPARE])


def _inside(found: Mapping[str, Sequence[Match]], population: Population) -> Found:
    pairs = [(seed, match) for seed, matches in found.items() for match in matches]
    inside = population.holds([(seed, match.id) for seed, match in pairs])
    kept: dict[str, list[Match]] = {seed: [] for seed in found}
    for (seed, match), is_inside in zip(pairs, inside, strict=True):
        if is_inside and len(kept[seed]) < KEPT:
            kept[seed].append(match)
    return {seed: tuple(matches) for seed, matches in kept.items()}
