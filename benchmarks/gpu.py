"""Does every part of linker that can use a GPU work on one, and what is the gain? This takes ten minutes on a GPU.

`python -m benchmarks.gpu` → benchmarks/results/gpu.json. It stops with an error if PyTorch sees no GPU. First come
the tests that only run on a GPU (`pytest -m gpu`). Then, compared with the CPU in the same process, wall seconds, the
minimum of three alternating rounds: exact search of 200,000 × 256 random vectors, whose rows must be the same;
encoding with a star, whose vectors must agree to .999; training, which must resume exactly; and two processes on one
batch (on two GPUs with NCCL, else with Gloo on the CPU), whose losses must equal those of one process.
"""

import contextlib
import dataclasses
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.support import real_vectors
from benchmarks.support.common import ROOT
from benchmarks.support.harness import Arguments, Results, benchmark
from indexes.vectors.certified import ByteScan, ExactScan
from linker.engine.torch_scan import TorchScan
from linker.training import checkpoint, loop
from tests.training import tiny

ROWS, BATCH, K, ROUNDS, TEXTS = 200_000, 64, 10, 3, 2000


def side_by_side(name: str, ways: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], list[Any]]:
    """Return the minimum seconds of each way (they take turns) and the result of each one's last round."""
    best, results = dict.fromkeys(ways, np.inf), {}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            start = time.perf_counter()
            results[way] = run()
            torch.cuda.synchronize()
            best[way] = min(best[way], time.perf_counter() - start)
    print(name, best, flush=True)
    return {f"{way}_s": round(seconds, 4) for way, seconds in best.items()}, list(results.values())


def search() -> dict[str, Any]:
    rows, queries = real_vectors.random_vectors(ROWS, 1), real_vectors.random_vectors(BATCH, 2)
    scans: dict[str, ExactScan] = {"cpu": ByteScan(), "gpu": TorchScan("cuda")}
    ways = {way: functools.partial(scan.search, rows, queries, K, None) for way, scan in scans.items()}
    costs, ((ours, _), (theirs, _)) = side_by_side("search", ways)
    assert (ours == theirs).all(), "the GPU finds other rows"
    return costs


def encode() -> dict[str, Any]:
    on_cpu, on_gpu, texts = tiny.encoder(), tiny.encoder(), tiny.pairs(3, TEXTS).documents
    on_gpu.to_gpu()
    costs, (ours, theirs) = side_by_side(
        "encode", {"cpu": lambda: on_cpu.encode(texts), "gpu": lambda: on_gpu.encode(texts)}
    )
    assert (ours * theirs).sum(axis=1).min() > 0.999, "the GPU encodes otherwise"
    return costs


def losses(out: Path) -> list[float]:
    lines = (out / "training/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row["loss"] for row in map(json.loads, lines) if "loss" in row]


def resume(folder: Path) -> dict[str, Any]:
    """Interrupt a GPU training run at its second checkpoint, resume it, and compare it with an uninterrupted run."""
    config, saved = dataclasses.replace(tiny.CONFIG, device="cuda"), []

    def interrupt(*arguments: Any) -> None:
        checkpoint.save_checkpoint(*arguments)
        saved.append(arguments)
        if len(saved) == 2:
            raise KeyboardInterrupt

    tiny.run(folder / "whole", config)
    with mock.patch.object(loop, "save_checkpoint", interrupt), contextlib.suppress(KeyboardInterrupt):
        tiny.run(folder / "twice", config)
    assert len(saved) == 2, "the training was not interrupted"
    tiny.run(folder / "twice", config)
    return same_losses(folder / "whole", folder / "twice")


def together(folder: Path) -> dict[str, Any]:
    by, device = ("nccl", "cuda") if torch.cuda.device_count() > 1 else ("gloo", "cpu")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for name, start in (("one", [sys.executable]), ("two", command)):
        program = [*start, tiny.__file__, str(folder / name), f"--device={device}"]
        subprocess.run(program, check=True, timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)})
    return {"by": by} | same_losses(folder / "one", folder / "two")


def same_losses(one: Path, other: Path) -> dict[str, Any]:
    ours, theirs = losses(one), losses(other)
    difference = float(np.abs(np.subtract(ours, theirs)).max())
    assert difference < 1e-3, f"the losses of {one.name} and {other.name} differ by {difference}"
    return {"steps": len(ours), "largest_difference": difference}


@benchmark(work=None)
def measured(options: Arguments) -> Results:
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU: there is nothing to verify")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "gpu", "tests"]
    tests = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    about = {"device": torch.cuda.get_device_name(0), "tests": tests.stdout.strip().splitlines()[-1]}
    parts = {"search": search(), "encode": encode(), "resume": resume(options.work)}
    return {**about, **parts, "together": together(options.work)}
