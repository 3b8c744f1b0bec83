"""Makes the order and the stopping rule that a review's settings name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linker.review.interface import Read, StopRule, StopState
from linker.review.orders import MergedOrder, Queue
from linker.review.population import Population
from linker.review.seeds import Seed
from linker.review.settings import Settings

if TYPE_CHECKING:
    from linker.engine import Engine


class NoRule:
    """Claims nothing."""

    state = StopState(False, None, "No stopping rule was chosen.")

    def update(self, read: Read) -> StopState:
        """Return that nothing is known."""
        return self.state


def make_order(engine: Engine, seeds: Sequence[Seed], settings: Settings, population: Population) -> Queue:
    """Return the order of a review. Raises InputError where the index cannot have it."""
    return MergedOrder(engine, seeds, settings, population)


def make_rule(settings: Settings, population: int) -> StopRule:
    """Return the stopping rule of a review. Raises InputError where there is none of this name."""
    return NoRule()


def price(rule: StopRule) -> str:
    """Return a sentence on what certainty would cost."""
    return ""
