"""A review whose job is a match for each row: claims, one of them twice, and rows, one of them without a match."""

import json
from collections.abc import Mapping
from pathlib import Path

from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.review.rows.candidates import Match, Matches, save, stamp

CLAIMS = {
    "sharks": "A photo shows sharks swimming along a flooded motorway in Houston after the hurricane",
    "sharks2": "A photo shows sharks swimming along a flooded motorway in Houston after the hurricane!",
    "bank": "A bank gives every new customer 500 euros for opening an account this week",
    "city": "Explorers found the ruins of an ancient city under the ice of Antarctica",
    "schools": "The mayor ordered all schools of the town to stay closed until the summer",
    "aquarium": "An aquarium lost its sharks in the storm and found them in the harbour",
}
ROWS = {
    "r1": "Sharks swim along a flooded motorway near Houston",
    "r2": "this bank gives every customer 500 euros",
    "r3": "they found a city under the ice of antarctica ???",
    "r4": "mayor closed all schools until the summer",
    "r5": "good morning everyone",
}
FOUND = {
    "r1": {"sharks": 0.97, "sharks2": 0.9, "aquarium": 0.02},
    "r2": {"bank": 0.61, "city": 0.01},
    "r3": {"city": 0.96, "sharks": 0.01},
    "r4": {"schools": 0.99, "city": 0.01},
    "r5": {"aquarium": 0.004},
}


def make_matching(folder: Path, name: str = "Checks") -> Project:
    """Make the review, without searching for candidates."""
    project = Workspace(folder).create(name)
    source = folder / ".claims.jsonl"
    lines = (json.dumps({"id": id_, "text": text, "date": "2026-03-01"}) for id_, text in CLAIMS.items())
    source.write_text("\n".join(lines), encoding="utf-8")
    build([source], project.index, BuildOptions())
    with Ledger(project.ledger) as ledger:
        ledger.put_seeds([Seed(id_, text) for id_, text in ROWS.items()])
        ledger.set("unit", "pairs")
    return project


def give_candidates(
    project: Project,
    candidates: Mapping[str, Mapping[str, float]] = FOUND,
    probabilities: tuple[float, ...] = (),
    right: tuple[bool, ...] = (),
) -> None:
    """Write candidates with chosen probabilities, as if a job had found them."""
    rows = {seed: tuple(Match(id_, p) for id_, p in of.items()) for seed, of in candidates.items()}
    with Ledger(project.ledger) as ledger, Engine.open(project.index) as engine:
        marked = stamp(ledger.seeds, (), engine.collection.manifest.generation)
    save(project.matches, Matches(marked, rows, 0, probabilities, right))
