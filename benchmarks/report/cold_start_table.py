"""The tables of benchmarks/cold_start.py, for docs/encoding-without-torch.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

COMMANDS = {
    "dense_torch_s": "`linker search --mode dense`, PyTorch",
    "dense_onnx_s": "`linker search --mode dense`, ONNX Runtime",
    "hybrid_onnx_s": "`linker search --mode hybrid`, ONNX Runtime",
    "bm25_s": "`linker search --mode bm25`",
    "doctor_s": "`linker doctor`",
    "help_s": "`linker --help`",
    "export_s": "`linker export` of the index",
}


def cold_start(results: Any) -> Iterator[str]:
    """CPU seconds of whole processes."""
    yield "| command, in a new process | CPU s |"
    yield "|---|---|"
    for key, command in COMMANDS.items():
        yield f"| {command} | {results[key]:.2f} |"


def runtimes(results: Any) -> Iterator[str]:
    """How close the vectors of the two runtimes are, and what they cost once they are loaded."""
    lone, batch = results["query_ms"], results["batch_of_64_ms"]
    yield "| | PyTorch | ONNX Runtime |"
    yield "|---|---|---|"
    yield f"| one query, CPU ms | {lone['torch']:.2f} | {lone['onnx']:.2f} |"
    yield f"| 64 queries, CPU ms | {batch['torch']:.1f} | {batch['onnx']:.1f} |"
    yield f"| least cosine over {results['texts']:,} articles | | {results['least_cosine']:.7f} |"
    yield f"| size of `model.onnx` | | {results['graph_kib']:,} KiB |"


TABLES = {"cold_start.processes": cold_start, "cold_start.runtimes": runtimes}
