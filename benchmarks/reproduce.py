"""The four papers' tables by `linker reproduce`, recorded for docs/published.md.

`python -m benchmarks.reproduce --paper ast|semeval|bucc|cbg --work FOLDER` computes the cells that FOLDER lacks;
with `--report`, it records those that are there.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from benchmarks.support.common import parse_options, record, shared_data
from linker.base.errors import LinkerError
from linker.papers.reproduce.cells import Outcome, reproduce

RECORDS = {
    "ast": "published_star",
    "semeval": "published_news",
    "bucc": "published_bucc",
    "cbg": "published_sts",
}


def main() -> None:
    options = parse_options(
        __doc__, paper=str, work=Path, data=(shared_data(), "of the paper, or in its place"), seeds=3,
        report=(False, "record what is there, run nothing"),
    )  # fmt: skip
    studies = import_module(f"linker.papers.reproduce.{options.paper}").studies
    found = studies(options.data, options.work, False)
    if options.report:
        found = [replace(s, systems=[replace(x, run=_nothing) for x in s.systems]) for s in found]
    tables = reproduce(
        options.paper, found, options.work, options.seeds,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    record(RECORDS[options.paper], tables)


def _nothing(seed: int) -> Outcome:
    raise LinkerError(f"seed {seed} was not computed")


if __name__ == "__main__":
    main()
