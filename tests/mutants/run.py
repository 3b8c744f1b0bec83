"""Run every mutant of the list against the tests that guard its line: `make mutants`, or

    python -m tests.mutants.run [--only TEXT] [--jobs N] [--json FILE]

Mutants live in copies of the tree, never in the tree itself. Each test run is a fork of a process that has already
loaded the heavy libraries, but none of our code. Exits with 1 if a mutant survives without being known as equivalent.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.mutants import ROOT, ListError, Mutant, find_test, locate, read

HEAVY = (
    "pytest", "hypothesis", "_hypothesis_pytestplugin", "pygments.lexers", "numpy.testing", "scipy.optimize",
    "scipy.sparse.linalg", "scipy.special", "scipy.stats", "torch", "safetensors.torch",
    "pytorch_metric_learning.miners",
    "faiss", "tantivy", "sklearn.neural_network", "gensim.models", "typer.testing", "tqdm", "orjson",
)  # fmt: skip
OMITTED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "dist", "*.egg-info")
OPTIONS = (
    "-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # its modules are loaded already
)  # fmt: skip
TIMEOUT = 300.0  # seconds; a mutant that hangs its tests is killed, too
PASSED = 0  # pytest's exit status
OUTCOMES = ("killed", "timeout", "survived", "unsound")  # unsound: its tests fail without it, too


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a mutant, one of `OUTCOMES`, and after how many seconds."""

    name: str
    path: str
    outcome: str
    seconds: float
    equivalent: str = ""


class Workshop:
    """A copy of the tree in which one mutant at a time is put in place and tested."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._sound: dict[tuple[str, ...], bool] = {}
        self._writes = 0

    def judge(self, mutant: Mutant, timeout: float = TIMEOUT) -> Outcome:
        """Run the mutant's tests without and with it."""
        tests = tuple(find_test(test, self.tree) for test in mutant.tests)
        path, start = locate(mutant, self.tree), time.monotonic()
        if tests not in self._sound:
            self._sound[tests] = self._run(tests, timeout) == PASSED
        outcome = self._mutated(mutant, path, tests, timeout) if self._sound[tests] else "unsound"
        seconds = round(time.monotonic() - start, 1)
        return Outcome(
            mutant.name, path.relative_to(self.tree).as_posix(), outcome, seconds, mutant.equivalent
        )

    def _mutated(self, mutant: Mutant, path: Path, tests: tuple[str, ...], timeout: float) -> str:
        text = path.read_text(encoding="utf-8")
        try:
            self._write(path, text.replace(mutant.old, mutant.new))
            status = self._run(tests, timeout)
        finally:
            self._write(path, text)
        return "survived" if status == PASSED else "timeout" if status < 0 else "killed"

    def _write(self, path: Path, text: str) -> None:
        """Write a source file with a distinct time, so that no compiled file of the same second replaces it."""
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (self._writes, self._writes))
        if path.suffix == ".c":
            build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
            subprocess.run(build, cwd=self.tree, check=True, capture_output=True)

    def _run(self, tests: tuple[str, ...], timeout: float) -> int:
        """Run tests in a fork and return pytest's exit status, or −1 when the time is up."""
        child = os.fork()
        if not child:
            _pytest(self.tree, tests)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return abs(os.waitstatus_to_exitcode(status))  # a crash counts as a failure
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1


def _pytest(tree: Path, tests: tuple[str, ...]) -> None:
    """Become a test run of the tree; does not return."""
    status = 70
    try:
        os.setsid()
        os.chdir(tree)
        output = os.open(tree / "mutant.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.environ |= {"PYTHONPATH": str(tree), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        sys.path.insert(0, str(tree))
        for name in [
            name for name in sys.modules if name.partition(".")[0] in ("indexes", "linker", "tests")
        ]:
            del sys.modules[name]
        import pytest

        options = [*OPTIONS, f"--rootdir={tree}", f"--basetemp={tree}/tmp"]
        status = int(pytest.main([*options, *tests], plugins=[_Unshrunk()]))
    except BaseException:  # whatever happens, a fork must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


class _Unshrunk:
    """Tells Hypothesis not to shrink its findings: we only need to know whether a test fails."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("unshrunk", phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("unshrunk")


_workshop: Workshop


def _open_workshop(folder: Path) -> None:
    global _workshop  # noqa: PLW0603 (a worker process has one)
    tree = Path(tempfile.mkdtemp(dir=folder)) / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*OMITTED))
    _workshop = Workshop(tree)


def _judge(mutant: Mutant) -> Outcome:
    return _workshop.judge(mutant)


def run(mutants: list[Mutant], jobs: int) -> list[Outcome]:
    """Judge all mutants in `jobs` copies of the tree, reporting each outcome as it arrives."""
    os.environ["OMP_NUM_THREADS"] = "1"  # threads for small products wait for each other
    for name in HEAVY:
        importlib.import_module(name)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(jobs, context, initializer=_open_workshop, initargs=(Path(folder),)) as pool:
            for outcome in pool.map(_judge, mutants):
                outcomes.append(outcome)
                print(f"{outcome.outcome:8} {outcome.seconds:6.1f} s  {outcome.name}", flush=True)
    return outcomes


def report(outcomes: list[Outcome]) -> tuple[dict[str, object], list[str]]:
    """Return the counts with every outcome, and the names of the mutants that are neither killed nor equivalent."""
    survivors = [o.name for o in outcomes if o.outcome in ("survived", "unsound") and not o.equivalent]
    counts = {kind: sum(o.outcome == kind for o in outcomes) for kind in OUTCOMES}
    data = {"mutants": len(outcomes), **counts, "survivors": survivors, "all": [asdict(o) for o in outcomes]}
    return data, survivors


def main(arguments: list[str] | None = None) -> int:
    """Run the requested mutants and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", help="only mutants whose name or path holds this; nothing is recorded"
    )
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that work at once")
    parser.add_argument("--json", type=Path, help="also write the outcomes to this file")
    options = parser.parse_args(arguments)
    try:
        mutants = [m for m in read() if any(part in f"{m.path} {m.name}" for part in options.only or [""])]
        for mutant in mutants:
            locate(mutant)
        outcomes = run(mutants, options.jobs)
    except ListError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    data, survivors = report(outcomes)
    if options.json:
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    if not options.only:
        from benchmarks.support.common import record

        record("mutants", data)
    print(", ".join(f"{data[kind]} {kind}" for kind in ("mutants", *OUTCOMES)))
    for name in survivors:
        print(f"not killed: {name}", file=sys.stderr)
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
