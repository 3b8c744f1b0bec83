"""The lead of one setting over another on the same queries, and its uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

from indexes.dtypes import Float64Array

HYBRID_CERTAINTY = 1.0  # standard errors
SINGLE_CERTAINTY = 2.0
INTERVAL = 2.0  # standard errors on either side


@dataclass(frozen=True, slots=True)
class Lead:
    """The mean of paired differences between two settings, and its standard error (infinite for a single query)."""

    mean: float
    error: float

    @classmethod
    def of(cls, ahead: Float64Array, behind: Float64Array) -> Lead:
        """Return the lead of the values `ahead` over `behind`, both [Q], for the same queries."""
        difference = ahead - behind
        if len(difference) < 2:
            return cls(float(difference.mean()), math.inf)
        return cls(float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference))))

    def exceeds(self, errors: float) -> bool:
        """Return whether the lead is positive and exceeds that many standard errors."""
        return round(self.mean, 12) > 0 and self.mean > errors * self.error

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.mean:.4f}"
        width = INTERVAL * self.error
        return f"{self.mean:.4f} ({self.mean - width:.4f} to {self.mean + width:.4f})"

    def to_json(self) -> dict[str, float | None]:
        """Return mean, standard error and interval (mean ± two standard errors); None if the error is undefined."""
        if math.isinf(self.error):
            return {"mean": self.mean, "error": None, "low": None, "high": None}
        width = INTERVAL * self.error
        return {
            "mean": self.mean, "error": self.error, "low": self.mean - width, "high": self.mean + width,
        }  # fmt: skip
