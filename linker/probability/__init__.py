"""P(link): how probable it is that a hit is relevant, learned from judged links, and thresholds that keep a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.probability.calibration import Calibration
    from linker.probability.promise import Promise, promise

__all__ = ["Calibration", "Promise", "promise"]
__getattr__ = lazy(
    __name__,
    {
        "Calibration": "linker.probability.calibration",
        "Promise": "linker.probability.promise",
        "promise": "linker.probability.promise",
    },
)
