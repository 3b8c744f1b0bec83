"""Runs a target on mutated inputs in a child process, so that crashes and endless loops are findings like others.

A target may accept an input, or raise one of our errors. Anything else is a fault: another exception, a failed
assertion in the target, a signal, more than `SECONDS` or `MEMORY` for one input. The input is saved under crashes/.
"""

import faulthandler
import importlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import xxhash

from indexes.errors import IndexesError
from linker.base.errors import LinkerError
from tests.fuzz.mutations import LONGEST, Material, mutated

HERE = Path(__file__).parent
CORPUS, CRASHES = HERE / "corpus", HERE / "crashes"
OURS = (IndexesError, LinkerError)
SECONDS = 10  # CPU seconds for one input, after which it counts as an endless loop
WAITING = 180  # wall-clock seconds, after which it counts as a deadlock
MEMORY = 3 << 30  # bytes beyond the memory of the prepared target
SANITIZED = "LINKER_FUZZ_SANITIZED"  # set under a sanitizer, which needs the whole address space
MOST_DEATHS = 25

Run = Callable[[bytes], object]


@dataclass(frozen=True)
class Target:
    """A reader of foreign data.

    prepare: called in the child with an empty folder; returns sound inputs and the function to run on each case.
    Files in corpus/NAME/ are sound inputs, too. tokens: words of the format. compiled: it reaches our C code. cases:
    number in CI. preload: slow imports, done before the child is forked.
    """

    name: str
    prepare: Callable[[Path], tuple[Sequence[bytes], Run]]
    tokens: tuple[bytes, ...] = ()
    compiled: bool = False
    cases: int = 500
    preload: tuple[str, ...] = ()


@dataclass
class Tally:
    """Outcomes of a target's cases; `failures` counts them by kind and place."""

    target: str
    seed: int
    cases: int = 0
    taken: int = 0
    refused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    inputs: dict[str, str] = field(default_factory=dict)  # the first input of each failure

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"failures": dict(self.failures)}


class _Shared:
    """Memory that survives the child: the current case, its input, and the counts."""

    HEAD = struct.Struct("<qqqq")  # next case, accepted, refused, bytes of the input

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.HEAD.size + LONGEST)
        self.next = self.taken = self.refused = 0

    def begin(self, data: bytes) -> None:
        self._store(len(data))
        self._memory[self.HEAD.size : self.HEAD.size + len(data)] = data

    def end(self, outcome: str) -> None:
        self.next += 1
        self.taken += outcome == "taken"
        self.refused += outcome == "refused"
        self._store(0)

    def _store(self, size: int) -> None:
        self.HEAD.pack_into(self._memory, 0, self.next, self.taken, self.refused, size)

    def read(self) -> bytes:
        """Take over the child's counts and return its current input."""
        self.next, self.taken, self.refused, size = self.HEAD.unpack_from(self._memory)
        return self._memory[self.HEAD.size : self.HEAD.size + size]


def fuzz(target: Target, seed: int = 0, cases: int | None = None, seconds: float | None = None) -> Tally:
    """Run a target on `cases` inputs, as many as `seconds` allow, or its own number."""
    until = time.monotonic() + seconds if seconds else float("inf")
    most = cases if cases is not None else (1 << 62 if seconds else target.cases)
    tally, shared = Tally(target.name, seed), _Shared()
    deaths = 0
    for name in target.preload:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as folder:
        work = Path(folder)  # in memory, if it is where tests write: this halves the time
        while shared.next < most and time.monotonic() < until and deaths < MOST_DEATHS:
            status = _in_child(work, lambda: _cases(target, seed, most, until, shared, work))
            data = shared.read()
            if status == 0:
                break
            deaths += 1
            words = _last_words(work / "stderr")
            _note(tally, f"{_death(status)}{words and f': {words}'}", data)
            shared.end("died")
        for line in _lines(work / "failures.jsonl"):
            entry = json.loads(line)
            _note(tally, entry["what"], bytes.fromhex(entry["input"]))
    tally.cases, tally.taken, tally.refused = shared.next, shared.taken, shared.refused
    return tally


def one(target: Target, data: bytes) -> str:
    """Run a target on one input in this process; return "taken" or the reason for refusal; its errors propagate."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        run = target.prepare(Path(folder))[1]
        try:
            run(data)
        except OURS as e:
            return f"{type(e).__name__}: {e}"
    return "taken"


def _in_child(work: Path, do: Callable[[], None]) -> int:
    """Fork, and return how the child ended: 0, minus the signal, or its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        with (work / "stderr").open("wb") as file:
            os.dup2(file.fileno(), 2)
        do()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _cases(target: Target, seed: int, most: int, until: float, shared: _Shared, work: Path) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()  # the parent reports how the child died
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mock.patch("os.fsync").start()  # fsync is tested elsewhere, and takes most of the time
    seeds, run = target.prepare(work)
    kept = [p.read_bytes() for p in sorted((CORPUS / target.name).glob("*"))]
    material = Material([*seeds, *kept], target.tokens)
    _limit_memory()
    with (work / "failures.jsonl").open("a", encoding="utf-8") as failures:
        while shared.next < most and time.monotonic() < until:
            # every sound input once unchanged, then cases made from them
            whole = shared.next < len(material.seeds)
            rng = random.Random(f"{seed}/{target.name}/{shared.next}")
            data = material.seeds[shared.next] if whole else mutated(rng, material)
            shared.begin(data)
            _set_timers(SECONDS, WAITING)
            what = _outcome(run, data)
            _set_timers(0, 0)
            if what not in ("taken", "refused"):
                failures.write(json.dumps({"what": what, "input": data.hex()}) + "\n")
                failures.flush()
            shared.end(what)


def _set_timers(processor: int, clock: int) -> None:
    """Have a signal end the child, even inside C code, when its CPU or wall-clock time has run out."""
    signal.setitimer(signal.ITIMER_PROF, processor)
    signal.setitimer(signal.ITIMER_REAL, clock)


def _outcome(run: Run, data: bytes) -> str:
    try:
        run(data)
    except OURS:
        return "refused"
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # a panic in a Rust library is not an Exception
        frames = traceback.extract_tb(e.__traceback__)
        root = HERE.parents[1]
        ours = [
            f for f in frames if Path(f.filename).is_relative_to(root) and ".venv" not in f.filename
        ] or frames
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return f"{type(e).__name__} at {where}: {str(e).splitlines()[0][:160] if str(e) else ''}"
    return "taken"


def _limit_memory() -> None:
    if os.environ.get(SANITIZED):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _note(tally: Tally, what: str, data: bytes) -> None:
    key = what if what.startswith(("died", "did not", "ended")) else what.split(": ", 1)[0]
    tally.failures[key] += 1
    if key not in tally.inputs:
        CRASHES.mkdir(exist_ok=True)
        path = CRASHES / f"{tally.target}-{xxhash.xxh3_64_hexdigest(data)}"
        path.write_bytes(data)
        tally.inputs[key] = f"{what}\n    python -m tests.fuzz --target {tally.target} --input {path}"


def _death(status: int) -> str:
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        return "did not end" if status == -signal.SIGPROF else "did not end: it waits for something"
    return f"died by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _last_words(path: Path) -> str:
    """Return the most informative part of a dead child's output: a sanitizer's finding, or the last line."""
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    found = [line for line in lines if "SUMMARY:" in line or "runtime error:" in line]
    return (found or lines or [""])[-1][:300]
