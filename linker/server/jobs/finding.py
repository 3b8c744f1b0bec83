"""The job `find`: list the documents to read for seeds, best first, given the judgements so far; nothing is stored."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.base.progress import Progress
from linker.engine.engine import Engine
from linker.review.interface import Judgement, Seed
from linker.review.population import Population
from linker.review.session.reading import make_order, make_rule
from linker.review.session.tally import Tally
from linker.review.settings import Settings
from linker.review.stopping import by_name

READING = "documents"
EVERY = 50  # number of documents between two progress reports


def run(spec: Mapping[str, Any], tell: Progress) -> dict[str, Any]:
    """Return at most `spec["limit"]` candidates for `spec["seeds"]` in the index `spec["index"]`, best first.

    `spec["settings"]` are a review's settings. Documents judged in `spec["judgements"]` are left out; they are
    training data if the order learns. Raises InputError or IndexesError.
    """
    seeds, settings = [Seed(**seed) for seed in spec["seeds"]], Settings.of(spec["settings"])
    judgements = [Judgement(**judgement) for judgement in spec["judgements"]]
    limit, total = int(spec["limit"]), 0
    with Engine.open(Path(spec["index"])) as engine:
        _check(engine, seeds, judgements)
        population = Population(engine.collection.rows, seeds, settings)
        order = make_order(engine, seeds, settings, population)
        tally = Tally(make_rule(settings, population.size, order), judgements, pairs=settings.unit == "pairs")
        for judgement in judgements:
            order.tell(judgement)
        found: list[dict[str, Any]] = []
        total = min(limit, max(0, population.size - tally.read))
        tell(READING, 0, total)
        while len(found) < limit and (candidate := order.next()):
            found.append({name: value for name, value in asdict(candidate).items() if name != "phase"})
            if len(found) % EVERY == 0:
                tell(READING, len(found), max(total, len(found)))
        tell(READING, len(found), len(found))
        stop = tally.rule.state
        languages = tally.languages(engine.foreign, population) if settings.learns else []
        return {
            "population": population.size, "read": tally.read, "relevant": tally.found, "estimated": stop.estimated,
            "certified": stop.certified, "left": stop.left, "by_order": stop.by_order and asdict(stop.by_order),
            "reason": str(stop.reason), "languages": [asdict(counts) for counts in languages],
            **by_name(tally.rule.total if settings.learns else None), "degraded": order.degraded, "candidates": found,
        }  # fmt: skip


def _check(engine: Engine, seeds: list[Seed], judgements: list[Judgement]) -> None:
    names = {seed.id for seed in seeds}
    if len(names) < len(seeds):
        raise InputError("two seeds have the same id: give each its own")
    if unknown := sorted({j.seed for j in judgements} - names - {""}):
        raise InputError(f"a judgement names the seed {unknown[0]!r}, which is not among the seeds: send it")
    for id_ in {seed.document for seed in seeds if seed.document}:
        engine.document(id_)
