"""Opens a review, for the page and for MCP alike."""

from __future__ import annotations

from linker.engine.engine import Engine
from linker.review.ledger import Ledger
from linker.review.project import Project
from linker.review.session.review import Review


def open_review(
    project: Project, name: str = "", engine: Engine | None = None
) -> tuple[Engine, Ledger, Review]:
    """Return a review ready to be judged; `name` is that of another one of the same index, `engine` its open index.

    A folder of linker 0.2 is marked as a review's. Raises InputError or IndexesError where it cannot be opened.
    """
    project.adopt()
    engine = engine or Engine.open(project.index)
    ledger = Ledger(project.ledger_of(name))
    return engine, ledger, Review(engine, ledger)
