"""Encode on many machines with Ray Data: one task reads, a pool of workers encodes, the caller gets vectors in order.

Only the caller writes the index, so a build on a cluster commits, resumes and ends as a local one does. A worker or
reader that dies is started again and repeats its unfinished work.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from indexes.errors import importing
from indexes.interface import Matrix
from linker.encoders.interface import Encoder
from linker.errors import LinkerError

OBJECT_STORE = 200 << 20  # bytes of shared memory for data between two steps, on one machine
BLOCK = 1 << 10  # bytes; a larger batch is sent by itself
Texts = Callable[[], Iterator[Sequence[str]]]


def encoded(texts: Texts, load: Callable[[], Encoder], encoder: Encoder) -> Iterator[Matrix]:
    """Yield the vectors, float32 [n, dim], of each batch of texts, in order; read ahead as far as Ray's memory allows.

    `texts` and `load` run in the workers. Without the environment variable RAY_ADDRESS, which names a cluster, Ray is
    started on this machine and can only be reached from it. Raises MissingExtraError without Ray, LinkerError where
    it does not start, or a worker's encoder fails or has another fingerprint than `encoder`.
    """
    ray = _import()
    with _cluster(ray):
        context = ray.data.DataContext.get_current().copy()
        context.execution_options.preserve_order = True
        context.target_max_block_size, context.target_min_block_size = BLOCK, 1
        context.enable_progress_bars = context.print_on_execution_start = False
        with ray.data.DataContext.current(context):
            here = {f"node:{ray.util.get_node_ip_address()}": 0.001}  # this machine, which has the corpus
            pool = ray.data.ActorPoolStrategy(size=max(1, int(ray.cluster_resources().get("CPU", 1))))
            read = ray.data.from_items([0]).map_batches(_Reader(texts), num_cpus=0, resources=here)
            rows = read.map(
                _Worker, fn_constructor_args=(load, encoder.fingerprint), compute=pool, num_cpus=1
            )
            try:
                for row in rows.iter_rows():
                    yield np.frombuffer(row["vectors"], dtype=np.float32).reshape(row["count"], encoder.dim)
            except ray.exceptions.RayError as error:
                cause = str(error).strip().splitlines()[-1]  # after the traceback of the worker
                raise LinkerError(f"a worker failed: {cause}") from error


def _import() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not os.environ.get("RAY_ADDRESS"):  # else Ray replaces 127.0.0.1 with an address that others can reach
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else its internal messages reach the terminal
    with importing("--engine ray", "ray"):
        import ray
        import ray.data
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="ray.data")  # about fewer batches than workers
    return ray


@contextlib.contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """Use the running Ray, or join the cluster that RAY_ADDRESS names, or start Ray for this machine alone."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    alone = {
        "address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1",
        "object_store_memory": OBJECT_STORE,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        try:
            ray.init(**quiet, **({} if os.environ.get("RAY_ADDRESS") else {**alone, "_temp_dir": folder}))
        except Exception as error:  # Ray raises bare exceptions
            raise LinkerError(f"Ray did not start: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()


class _Reader:
    """Yields one row per batch of texts, whatever its input."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def __call__(self, _: Any) -> Iterator[dict[str, list[list[str]]]]:
        for batch in self._texts():
            yield {"texts": [list(batch)]}


class _Worker:
    """Holds an encoder and turns a row of texts into a row of vectors."""

    def __init__(self, load: Callable[[], Encoder], fingerprint: str) -> None:
        self._encoder = load()
        if self._encoder.fingerprint != fingerprint:
            raise LinkerError(
                "the encoder on a worker differs from the one here: install the same one on all machines"
            )

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        texts = list(row["texts"])
        vectors = self._encoder.encode(texts) if texts else np.empty(0)
        return {"count": len(texts), "vectors": np.ascontiguousarray(vectors, dtype=np.float32).tobytes()}
