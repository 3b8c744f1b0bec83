"""The fuzzer in a separate process: it forks, which a process with threads must not do."""

import json
import subprocess
import sys
from typing import Any

from tests.fuzz.engine import HERE


def tallies(*arguments: str) -> dict[str, dict[str, Any]]:
    """Run `python -m tests.fuzz --json` with more arguments and return each target's tally."""
    command = [sys.executable, "-m", "tests.fuzz", "--json", *arguments]
    done = subprocess.run(command, cwd=HERE.parents[1], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the fuzzer ended with status {done.returncode}")
    return {tally["target"]: tally for tally in map(json.loads, done.stdout.splitlines())}


def counts(*arguments: str) -> dict[str, dict[str, int]]:
    """Return how many cases each target had, and how many of them failed; compiled targets also under sanitizers."""
    found = tallies(*arguments) | tallies("--sanitized", *arguments)
    return {name: {"cases": t["cases"], "failures": sum(t["failures"].values())} for name, t in found.items()}
