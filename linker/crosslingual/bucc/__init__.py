"""The BUCC 2015 shared task: preparing its pages, and its table of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.bucc.prepare import Report, strip_markup
    from linker.crosslingual.bucc.table import evaluate_runs

__all__ = ["Report", "evaluate_runs", "strip_markup"]
__getattr__ = lazy(
    __name__,
    {
        "Report": "linker.crosslingual.bucc.prepare",
        "evaluate_runs": "linker.crosslingual.bucc.table",
        "strip_markup": "linker.crosslingual.bucc.prepare",
    },
)
