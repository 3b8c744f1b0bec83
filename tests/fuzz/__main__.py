"""`python -m tests.fuzz`: feed mutated inputs to every reader of foreign files, and report the outcomes."""

import argparse
import json
import sys
from pathlib import Path

from tests.fuzz import engine, sanitized
from tests.fuzz.engine import Target
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=sorted(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--compiled", action="store_true", help="only those that reach the C parts")
    parser.add_argument(
        "--sanitized", action="store_true", help="those, with the C parts under ASan and UBSan"
    )
    parser.add_argument("--seconds", type=float, help="for each target, instead of a number of cases")
    parser.add_argument("--cases", type=int, help="for each target [default: its own number, as in CI]")
    parser.add_argument("--factor", type=float, default=1, help="of each target's own number of cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--input", type=Path, help="run the one target on this file alone, and show a traceback"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.target or [n for n, t in TARGETS.items() if t.compiled or not options.compiled]
    if options.input:
        print(engine.one(TARGETS[names[0]], options.input.read_bytes()))
        return 0
    if options.sanitized:
        tallies = sanitized.fuzz(options.target, options.seed, options.cases, options.seconds)
    else:
        tallies = (_tally(TARGETS[n], options) for n in names)
    failed = False
    for tally in tallies:
        failed |= bool(tally["failures"])
        print(json.dumps(tally) if options.json else _told(tally), flush=True)
    return int(failed)


def _tally(target: Target, options: argparse.Namespace) -> dict[str, object]:
    cases = options.cases
    if cases is None and not options.seconds:
        cases = int(target.cases * options.factor)
    return engine.fuzz(target, options.seed, cases, options.seconds).to_json()


def _told(tally: dict[str, object]) -> str:
    line = f"{tally['target']:<18}{tally['cases']:>9} cases{tally['taken']:>9} taken{tally['refused']:>9} refused"
    failures, inputs = tally["failures"], tally["inputs"]
    assert isinstance(failures, dict)
    assert isinstance(inputs, dict)
    return "\n".join([line, *(f"  {count} × {inputs[what]}" for what, count in failures.items())])


if __name__ == "__main__":
    sys.exit(main())
