"""What all benchmarks share: CPU time, a description of the machine, the record in benchmarks/results, the data."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = (
    "numpy", "scipy", "tantivy", "bm25s", "faiss-cpu", "faiss-gpu-cu12", "torch", "sentence-transformers",
    "ranx", "pytrec-eval-terrier", "entmax", "pandas", "polars", "numba",
)  # fmt: skip


def cpu_time(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the least CPU time, in seconds and over all threads of the process, of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


@dataclass(frozen=True)
class Cost:
    """What a call cost in a process of its own: CPU seconds of all threads, peak memory and its growth, in MiB."""

    cpu_s: float
    peak_mib: float
    growth_mib: float


def in_child(run: Callable[..., object], args: Sequence[Any], warm: Sequence[Any] | None = None) -> Cost:
    """Call `run(*args)`, a function of a module, in a fresh process; before the clock starts, `run(*warm)`."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_cost, run, args, warm).result()


def _cost(run: Callable[..., object], args: Sequence[Any], warm: Sequence[Any] | None) -> Cost:
    if warm is not None:
        run(*warm)
    before, start = _memory("VmRSS"), time.process_time()
    run(*args)
    seconds, peak = time.process_time() - start, _memory("VmHWM")
    return Cost(round(seconds, 4), round(peak, 1), round(peak - before, 1))


def _memory(field: str) -> float:
    """Return a figure of this process in MiB (ru_maxrss would be the parent's where that is larger)."""
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
    """Return the full name of the commit that is checked out."""
    return _git("rev-parse", "HEAD")


def _git(*args: str) -> str:
    answer = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def _command() -> str:
    """Return the command as one would type it again; of an absolute path only the name is kept."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"-m {spec.name}" if spec is not None else Path(sys.argv[0]).name
    arguments = [Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:]]
    return " ".join(["python", program, *arguments])


def record(name: str, data: dict[str, Any], seed: int | None = None) -> Path:
    """Write benchmarks/results/NAME.json: `data` with command, commit, date, machine and seed."""
    # Untracked files count: the code that ran may be among them.
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
    path.write_text(json.dumps({**about, "results": data}, indent=2, ensure_ascii=False) + "\n")
    return path


def shared_data() -> Path:
    """Return the folder of the shared data: LINKER_SHARED_DATA, or ../shared/data beside the repository."""
    return Path(os.environ.get("LINKER_SHARED_DATA", ROOT.parent / "shared" / "data"))


def parse_work_options(description: str | None) -> argparse.Namespace:
    """Read the options of the benchmarks that build indexes of articles and sentences."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=Path, help="folder for data and indexes, kept (otherwise temporary)")
    parser.add_argument("--sentences", type=int, default=200_000)
    parser.add_argument("--graph", type=int, default=40_000, help="sentences that the HNSW graph takes")
    parser.add_argument(
        "--only", default="", help="only the cases whose name holds this; nothing is recorded"
    )
    return parser.parse_args()
