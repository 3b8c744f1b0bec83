"""The cost of a single `linker search` in a new process, with PyTorch or ONNX Runtime as the query encoder.

`python -m benchmarks.cold_start` → benchmarks/results/cold_start.json: CPU seconds of whole processes (user and
system), the minimum of several. The index holds the bbc-news articles; its encoder is a star of the recommended
preset with the corpus vocabulary. Its weights are random, which does not affect times, because its ring is computed as
in a trained model. The vectors of both runtimes are compared on the corpus, and so is the time per query once
everything is loaded.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import cpu_time, shared_data
from benchmarks.support.harness import Arguments, Results, benchmark

CORPUS = shared_data() / "bbc-news" / "corpus.jsonl.gz"
QUERY = "voters fear fraud in postal ballots before the general election"
RUNS, WORDS = 7, 30_000


def cost(*arguments: str | Path) -> float:
    """Return the CPU seconds of one `linker` process, including its children."""
    command = [sys.executable, "-m", "linker", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return usage.ru_utime + usage.ru_stime


def least(*arguments: str | Path, runs: int = RUNS) -> float:
    """Return the least cost of several runs, after one run to fill the page cache."""
    cost(*arguments)
    return round(min(cost(*arguments) for _ in range(runs)), 3)


def make_model(folder: Path) -> list[str]:
    """Save a star with random weights and the corpus vocabulary; return the corpus's texts."""
    import torch

    from indexes.interface import Document
    from linker.corpora import read_corpus
    from linker.encoders.configs import PRESETS
    from linker.encoders.folder import save
    from linker.encoders.text import TextEncoder
    from linker.encoders.tokens import Vocabulary, WordTokenizer

    texts = [d.full_text for d in read_corpus(CORPUS) if isinstance(d, Document)]
    torch.manual_seed(0)
    vocabulary = Vocabulary.build(texts, max_size=WORDS)
    encoder = TextEncoder.new(PRESETS["recommended"], WordTokenizer(vocabulary), 2048)
    with torch.no_grad():
        for name, parameter in encoder.module.named_parameters():
            if "ring.out" in name:
                parameter.normal_(std=0.1)
            elif "raw_alpha" in name:
                parameter.copy_(torch.linspace(-3, 3, len(parameter)))
    save(encoder, folder)
    return texts


def compared(folder: Path, texts: list[str]) -> dict[str, Any]:
    """Return how close the two runtimes' vectors are and the cost of a warm query in each."""
    from linker.encoders.loading import load_encoder

    by_torch, by_onnx = load_encoder(folder), load_encoder(folder, light=True)
    one, other = by_torch.encode(texts), by_onnx.encode(texts)
    lone = {name: cpu_time(partial(e.encode, [QUERY]), 50) for name, e in _named(by_torch, by_onnx)}
    batch = {name: cpu_time(partial(e.encode, [QUERY] * 64), 10) for name, e in _named(by_torch, by_onnx)}
    return {
        "texts": len(texts),
        "least_cosine": round(float((one * other).sum(1).min()), 7),
        "largest_difference": float(f"{np.abs(one - other).max():.2g}"),
        "query_ms": {name: round(1e3 * seconds, 3) for name, seconds in lone.items()},
        "batch_of_64_ms": {name: round(1e3 * seconds, 2) for name, seconds in batch.items()},
    }


def _named(by_torch: Any, by_onnx: Any) -> list[tuple[str, Any]]:
    return [("torch", by_torch), ("onnx", by_onnx)]


@benchmark(work=None)
def measured(options: Arguments) -> Results:
    model, index = options.work / "model", options.work / "index"
    texts = make_model(model)
    cost("index", "build", CORPUS, "--out", index, "--encoder", model)
    dense = ("search", index, "--mode", "dense", "--text", QUERY)
    figures: dict[str, Any] = {"dense_torch_s": least(*dense, runs=3)}
    figures["export_s"] = round(cost("export", index), 2)
    figures["dense_onnx_s"] = least(*dense)
    figures["hybrid_onnx_s"] = least("search", index, "--mode", "hybrid", "--text", QUERY)
    figures["bm25_s"] = least("search", index, "--mode", "bm25", "--text", QUERY)
    figures["doctor_s"] = least("doctor", runs=3)
    figures["help_s"] = least("--help", runs=3)
    cost("export", model)
    size = (model / "model.onnx").stat().st_size
    return {**figures, "graph_kib": round(size / 1024), **compared(model, texts)}
