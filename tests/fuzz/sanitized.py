"""The compiled parts under AddressSanitizer and UndefinedBehaviorSanitizer, in a separate copy of the tree."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.engine import CRASHES, HERE, SANITIZED

ROOT = HERE.parents[1]
PARTS = ("scan", "postings", "features")
FLAGS = (
    "-O1", "-ffp-contract=off", "-g", "-shared", "-fPIC", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all", "-fno-omit-frame-pointer",
)  # fmt: skip
OPTIONS = {
    # Python frees much only at exit; a segment's file may be larger than any allocation of a library
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "PYTHONMALLOC": "malloc",  # so that each Python object has its own guards
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    SANITIZED: "1",
}


def missing() -> str:
    """Return why sanitizers cannot run here; empty if they can."""
    if not shutil.which("gcc"):
        return "there is no gcc"
    return "" if _runtime().is_absolute() and _runtime().exists() else "gcc has no libasan: install it"


def _runtime() -> Path:
    asked = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return Path(asked.stdout.strip())


def copy_tree(target: Path, replaced: Mapping[str, str] | None = None, parts: Sequence[str] = PARTS) -> None:
    """Copy the packages and the fuzzer; compile the C parts, with text replacements, under the sanitizers."""
    for package in ("indexes", "linker", "tests"):
        ignored = shutil.ignore_patterns("*.so", "crashes")
        shutil.copytree(ROOT / package, target / package, ignore=ignored)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    room = target / "indexes" / "kernels"
    for part in parts:
        source, library = room / f"{part}.c", room / f"_{part}{suffix}"
        text = source.read_text(encoding="utf-8")
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        source.write_text(text, encoding="utf-8")
        subprocess.run(["gcc", *FLAGS, "-o", str(library), str(source), "-lm"], check=True)


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in a copied tree, with the sanitizer runtime preloaded."""
    environment = {**os.environ, **OPTIONS, "PYTHONPATH": str(tree), "LD_PRELOAD": str(_runtime())}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def fuzz(
    targets: list[str] | None, seed: int, cases: int | None, seconds: float | None
) -> Iterator[dict[str, Any]]:
    """Fuzz the targets that reach our C code under the sanitizers; yield their tallies as plain values."""
    if why := missing():
        raise SystemExit(f"error: the C parts cannot be sanitized: {why}")
    options = [part for name in targets or () for part in ("--target", name)] or ["--compiled"]
    options += ["--cases", str(cases)] if cases is not None else []
    options += ["--seconds", str(seconds)] if seconds is not None else []
    with tempfile.TemporaryDirectory(prefix="sanitized-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        done = run(tree, "-m", "tests.fuzz", "--json", "--seed", str(seed), *options)
        if done.returncode not in (0, 1) or not done.stdout:
            raise SystemExit(f"error: the sanitized run ended with {done.returncode}: {done.stderr[-3000:]}")
        found = tree / CRASHES.relative_to(ROOT)
        if found.exists():
            shutil.copytree(found, CRASHES, dirs_exist_ok=True)
        for line in done.stdout.splitlines():
            tally = json.loads(line.replace(str(tree), str(ROOT)))
            yield {**tally, "target": f"{tally['target']} (sanitized)"}
