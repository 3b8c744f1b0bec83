"""The order that learns from judgements: a linear model over the whole index, retrained during reading."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.learning.feedback import FeedbackOrder

__all__ = ["FeedbackOrder"]
__getattr__ = lazy(__name__)
