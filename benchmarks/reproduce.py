"""The four papers' tables by `linker reproduce`, recorded for docs/published.md.

`python -m benchmarks.reproduce --paper ast|semeval|bucc|cbg --work FOLDER` computes the cells that FOLDER lacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.support.common import parse_options, record, shared_data
from linker.papers.reproduce.cells import run

RECORDS = {
    "ast": "published_star",
    "semeval": "published_news",
    "bucc": "published_bucc",
    "cbg": "published_sts",
}


def main() -> None:
    options = parse_options(
        __doc__, paper=str, work=Path, data=(shared_data(), "of the paper, or in its place"), seeds=3
    )
    found = run(
        options.paper, options.data, options.work, options.seeds, quick=False,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    record(RECORDS[options.paper], found)


if __name__ == "__main__":
    main()
