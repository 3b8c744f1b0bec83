"""Names by which runs are told apart in a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from linker.errors import InputError
from linker.evaluation.result import Evaluation


def labels_of(runs: Sequence[Any], results: Sequence[Evaluation]) -> list[str]:
    """Name runs by their sixth column, or by their paths or numbers where those names repeat.

    Raises InputError where a run is given twice.
    """
    names = [e.run_name for e in results]
    if len(set(names)) == len(names):
        return names
    labels = [str(r) if isinstance(r, (str, os.PathLike)) else f"run {i}" for i, r in enumerate(runs, 1)]
    if len(set(labels)) < len(labels):
        raise InputError("the same run is given twice")
    return labels
