"""The four papers' tables by `linker reproduce`, recorded for docs/published.md.

`python -m benchmarks.reproduce --paper ast|semeval|bucc|cbg --work FOLDER` computes the cells that FOLDER lacks; with
`--report`, it records the existing cells. Rows that a run lacks stay as they were recorded, with their machine and
commit: the figures of a model that was trained for many steps hold only for a seed on one kind of processor.
"""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.support.common import RESULTS, parse_options, record, shared_data
from linker.base.errors import LinkerError
from linker.base.files import read_json
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
    name = RECORDS[options.paper]
    before = _recorded_rows(RESULTS / f"{name}.json")
    tables["tables"] = [_filled(one, before.get(one["title"], [])) for one in tables["tables"]]
    record(name, tables)


def _recorded_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows with figures of each recorded table, each with its machine and commit as `recorded`."""
    if not path.exists():
        return {}
    record = read_json(path)
    where = f"{record['machine']['cpu']}, commit {record['commit'][:7]}"
    return {
        table["title"]: [{"recorded": where, **row} for row in table["rows"] if row["here"]]
        for table in record["results"]["tables"]
    }


def _filled(shown: dict[str, Any], before: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a table with missing rows filled in from the record, and the record's additional rows last.

    Rows without any figure are left out.
    """
    earlier_rows = {row["system"].lower(): row for row in before}
    rows = []
    for row in shown["rows"]:
        earlier = earlier_rows.pop(row["system"].lower(), row)
        rows.append(
            row if row["here"] else earlier | {"system": row["system"], "published": row["published"]}
        )
    rows = [row for row in (*rows, *earlier_rows.values()) if row["here"] or row["published"]]
    known = [
        {**row, "here": {m: row["here"][m] for m in shown["measures"] if m in row["here"]}} for row in rows
    ]
    return {**shown, "rows": known}


def _nothing(seed: int) -> Outcome:
    raise LinkerError(f"seed {seed} was not computed")


if __name__ == "__main__":
    main()
