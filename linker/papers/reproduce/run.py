"""Which studies a paper has, and running them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.papers.reproduce.cells import Log, reproduce


def run(paper: str, data: Path, work: Path, seeds: int, *, quick: bool, log: Log) -> dict[str, Any]:
    """Return the tables of a paper ("ast", "semeval", "bucc" or "cbg") on the data in a folder, as JSON values.

    `work` keeps models and finished cells. Raises InputError where the folder holds no data of the paper, or no
    system can be run; MissingExtraError where a library is missing.
    """
    if not data.is_dir():
        raise InputError(f"there is no folder {data}")
    work.mkdir(parents=True, exist_ok=True)
    # Only the paper's own: each loads other libraries.
    studies = import_module(f"linker.papers.reproduce.{paper}").studies(data, work, quick)
    return reproduce(paper, studies, work, seeds, log)
