"""Shared by all benchmarks: CPU time, the machine's description, the record in benchmarks/results, the data."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gzip
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar

import numpy as np
import orjson

Result = TypeVar("Result")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = (
    "numpy", "scipy", "tantivy", "bm25s", "faiss-cpu", "faiss-gpu-cu12", "lancedb", "torch", "sentence-transformers",
    "ranx", "pytrec-eval-terrier", "entmax", "pandas", "polars", "numba",
)  # fmt: skip


def cpu_time(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the least CPU time of several runs, in seconds, over all threads of the process."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def percentiles(seconds: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Return the median and the 99th percentile of seconds, in milliseconds."""
    p50, p99 = (1000 * np.percentile(seconds, [50, 99])).tolist()
    return {"p50_ms": round(p50, digits), "p99_ms": round(p99, digits)}


def fresh(run: Callable[..., Result], *args: Any) -> Result:
    """Run `run(*args)` in a fresh process and return its result; `run` must be a function of a module."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, *args).result()


@dataclass(frozen=True)
class Cost:
    """The cost of a call in its own process: CPU seconds of all threads, peak memory and its growth, in MiB."""

    cpu_s: float
    peak_mib: float
    growth_mib: float


def in_child(run: Callable[..., object], args: Sequence[Any], warm: Sequence[Any] | None = None) -> Cost:
    """Call `run(*args)` in a fresh process, and `run(*warm)` before the clock starts; see `fresh`."""
    return fresh(_cost, run, args, warm)


def _cost(run: Callable[..., object], args: Sequence[Any], warm: Sequence[Any] | None) -> Cost:
    if warm is not None:
        run(*warm)
    before, start = memory("VmRSS"), time.process_time()
    run(*args)
    seconds, peak = time.process_time() - start, memory("VmHWM")
    return Cost(round(seconds, 4), round(peak, 1), round(peak - before, 1))


def memory(field: str) -> float:
    """Return a figure of /proc/self/status in MiB (ru_maxrss would be the parent's if that is larger)."""
    line = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert line is not None
    return int(line[1]) / 1024


def machine() -> dict[str, Any]:
    """Describe the machine and the installed packages that matter, without naming the host."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str:
    """Return the full hash of the checked-out commit."""
    return _git("rev-parse", "HEAD")


def _git(*args: str) -> str:
    answer = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def _command() -> str:
    """Return the command as one would retype it; absolute paths are reduced to their names."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"-m {spec.name}" if spec is not None else Path(sys.argv[0]).name
    arguments = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]
    return " ".join(["python", program, *arguments])


def record(name: str, data: dict[str, Any], seed: int | None = None, part: str = "") -> Path:
    """Write benchmarks/results/NAME.json: `data` with command, commit, date, machine and seed.

    If only a `part` of the data is new, the others keep their sources.
    """
    # Untracked files count as changes, since the code that ran may be among them.
    changed = _git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    about = {
        "command": _command(),
        "commit": commit(),
        "dirty": bool(changed),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "machine": machine(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    if part:
        earlier = json.loads(path.read_text(encoding="utf-8")).get("parts", {}) if path.exists() else {}
        about["parts"] = earlier | {part: source(about)}
    path.write_text(json.dumps({**about, "results": data}, indent=2, ensure_ascii=False) + "\n")
    return path


def source(about: Mapping[str, Any]) -> str:
    """Return where results come from, as the pages print it: the command, the machine, and the commit."""
    machine = about["machine"]
    return f"*{about['command']}*, {machine['cpu']}, {machine['cores']} cores, commit {about['commit'][:7]}"


def recorded(name: str) -> dict[str, Any]:
    """Return the results that benchmarks/results/NAME.json holds, {} without the file."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}
    return found


class KeptRows(list[dict[str, Any]]):
    """Rows of results, kept between runs in the file at `path`, if one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        super().__init__(json.loads(line) for line in lines)

    def has(self, **values: object) -> bool:
        """Return whether a row has all these values."""
        return any(all(row.get(key) == value for key, value in values.items()) for row in self)

    def missing(self, **axes: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Yield each combination of the axes' values that no row has yet; the last axis varies fastest."""
        for values in itertools.product(*axes.values()):
            named = dict(zip(axes, values, strict=True))
            if not self.has(**named):
                yield named

    def keep(self, *rows: dict[str, Any]) -> None:
        """Add rows, print them, and write them to the file."""
        print(*rows, sep="\n", flush=True)
        self.extend(rows)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines, gzipped if its name ends in .gz."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from map(orjson.loads, file)


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Return what a file holds (.json, .npy or .npz, by its name), which is made first if it is missing."""
    if not path.exists():
        found, unfinished = make(), path.with_name(f"unfinished-{path.name}")
        if path.suffix == ".json":
            unfinished.write_bytes(orjson.dumps(found, np.ndarray.tolist, orjson.OPT_SERIALIZE_NUMPY))
        elif path.suffix == ".npy":
            np.save(unfinished, found)
        else:
            np.savez(unfinished, **found)
        unfinished.rename(path)
    return orjson.loads(path.read_bytes()) if path.suffix == ".json" else np.load(path)


def shared_data() -> Path:
    """Return the folder of the shared data: LINKER_SHARED_DATA, or ../shared/data next to the repository."""
    return Path(os.environ.get("LINKER_SHARED_DATA", ROOT.parent / "shared" / "data"))


class Commas(tuple[Any, ...]):
    """Comma-separated values of an option; the first determines their type."""

    def read(self, text: str) -> Commas:
        """Return the values in a text."""
        return Commas(map(type(self[0]), text.split(",")))


def parse_options(description: str | None, **options: Any) -> argparse.Namespace:
    """Read the command line of a benchmark: `rows=10` is the option `--rows`, an int whose default is 10.

    A type instead of a default makes the option required; `Path | None` makes it optional without a default, False a
    switch, a list an option with any number of values, and `Commas` one with comma-separated values. A pair is any of
    these and the option's help.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, given in options.items():
        default, text = given if type(given) is tuple else (given, None)
        flag = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(flag, action="store_true", help=text)
        elif isinstance(default, Commas):
            parser.add_argument(flag, type=default.read, default=default, help=text)
        elif isinstance(default, list):
            kind = type(default[0]) if default else str
            parser.add_argument(flag, nargs="*", type=kind, default=default, help=text)
        elif isinstance(default, type):
            parser.add_argument(flag, type=default, required=True, help=text)
        elif isinstance(default, UnionType):
            parser.add_argument(flag, type=default.__args__[0], help=text)
        else:
            parser.add_argument(flag, type=type(default), default=default, help=text)
    return parser.parse_args()


@contextlib.contextmanager
def work_folder(named: Path | None) -> Iterator[Path]:
    """Work in the folder named on the command line, which is kept, or in a temporary folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = named or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
