"""Makes the order and the stopping rule that a review's settings name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linker.review import stopping
from linker.review.interface import Seed
from linker.review.learning import FeedbackOrder
from linker.review.orders import MergedOrder, Queue
from linker.review.population import Population
from linker.review.settings import Settings
from linker.review.stopping import Rule

if TYPE_CHECKING:
    from linker.engine import Engine


def make_order(engine: Engine, seeds: Sequence[Seed], settings: Settings, population: Population) -> Queue:
    """Return the order of a review. Raises InputError where the index cannot have it."""
    if settings.learns:
        return FeedbackOrder(engine, seeds, population, seed=settings.seed)
    return MergedOrder(engine, seeds, settings, population)


def make_rule(settings: Settings, population: int) -> Rule[Any]:
    """Return the stopping rule of a review. Raises InputError where there is none of this name, ConfigError."""
    options = {"audit": settings.audit, **settings.rule_options}
    return stopping.make(settings.rule, population, settings.target, options)
