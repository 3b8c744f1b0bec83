"""The harness of all benchmarks: a module declares its measurement and options; the rest is automatic.

    @benchmark(seed=0, work=WORK, languages=Commas(("de", "fr")), rows=ROWS)
    def measured(options: Arguments) -> Results: ...

In the module that is run, `python -m benchmarks.NAME`, this last definition reads the command line (`parse_options`),
calls the function, and records its result in benchmarks/results/NAME.json, with commit, machine and seed. Two options
are more than values: `work` is an open folder (if it is None, a temporary one without an option), and `rows` the rows
of results that a file keeps between runs; they are declared as KEPT, WORK or None, and as ROWS.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.support.common import Commas, KeptRows, parse_options, record, recorded, work_folder

__all__ = ["KEPT", "ROWS", "WORK", "Arguments", "Commas", "KeptRows", "Results", "benchmark", "run_parts"]

Arguments = argparse.Namespace
Results = dict[str, Any]
Measure = Callable[[Arguments], Results | None]
KEPT = (Path, "folder for data, indexes and models, kept")
WORK = (Path | None, "folder for data and indexes, kept (otherwise temporary)")
ROWS = (Path | None, "keeps rows between runs; those that it has are not made again")


def benchmark(*, seed: int | None = None, **options: Any) -> Callable[[Measure], Measure]:
    """Declare what a module measures, as its last definition; if it returns None, nothing is recorded."""

    def declare(measure: Measure) -> Measure:
        if measure.__module__ == "__main__":
            _run(measure, seed, options)
        return measure

    return declare


def _run(measure: Measure, seed: int | None, options: dict[str, Any]) -> None:
    main = sys.modules["__main__"]
    given = parse_options(
        main.__doc__, **{name: value for name, value in options.items() if value is not None}
    )
    with contextlib.ExitStack() as stack:
        if options.get("work", "") in (KEPT, WORK, None):
            given.work = stack.enter_context(work_folder(getattr(given, "work", None)))
        if options.get("rows") is ROWS:
            given.rows = KeptRows(given.rows)
        results = measure(given)
    if results is not None:
        print(record(_name(), results, seed))


def _name() -> str:
    spec = sys.modules["__main__"].__spec__
    assert spec is not None, "run it as python -m benchmarks.NAME"
    return spec.name.rpartition(".")[2]


def run_parts(parts: Mapping[str, Callable[[Path], Any]], *extra: str, seed: int = 0) -> None:
    """Run the parts that `--only` names, by default all but `extra`, and record each as it finishes."""

    def measure(options: Arguments) -> None:
        if unknown := {*options.only} - {*parts}:
            raise SystemExit(
                f"error: there is no part {', '.join(sorted(unknown))}; parts: {', '.join(parts)}"
            )
        for part in options.only:
            found = parts[part](options.work)
            if found is not None:
                record(_name(), recorded(_name()) | {part: found}, seed, part)
                print(json.dumps({part: found}, indent=2), flush=True)

    usual = [part for part in parts if part not in extra]
    _run(measure, seed, {"work": KEPT, "only": (usual, "some of the parts; the others stay as recorded")})
