"""Encode on many machines with Ray Data: one task reads, a pool of workers encodes, the caller gets vectors in order.

Only the caller writes the index, so a build on a cluster commits, resumes and ends like a local one. A worker or
reader that dies is restarted and repeats its unfinished work.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from indexes.interface import Matrix
from linker.encoders.interface import Encoder
from linker.engine.scaleout.cluster import check_gpus, connection, failure, import_ray, load_checked, workers

BLOCK = 1 << 10  # maximum number of bytes sent together; a larger batch is sent alone
Texts = Callable[[], Iterator[Sequence[str]]]


def encoded(texts: Texts, load: Callable[[], Encoder], encoder: Encoder, gpus: float = 0) -> Iterator[Matrix]:
    """Yield the vectors, float32 [n, dim], of each batch of texts, in order; read ahead as far as Ray's memory allows.

    `texts` and `load` run in the workers, each of which takes `gpus` of Ray's GPUs. Without the environment variable
    RAY_ADDRESS, which names a cluster, Ray is started on this machine and can be reached only from it. Raises
    MissingExtraError without Ray, LinkerError if Ray does not start or has too few GPUs, or if a worker's encoder fails
    or its fingerprint differs from that of `encoder`.
    """
    ray = import_ray()
    with connection(ray):
        check_gpus(ray, gpus)
        context = ray.data.DataContext.get_current().copy()
        context.execution_options.preserve_order = True
        context.target_max_block_size, context.target_min_block_size = BLOCK, 1
        context.enable_progress_bars = context.print_on_execution_start = False
        with ray.data.DataContext.current(context):
            here = {f"node:{ray.util.get_node_ip_address()}": 0.001}  # this machine, which has the corpus
            pool = ray.data.ActorPoolStrategy(size=workers(ray, gpus))
            read = ray.data.from_items([0]).map_batches(_Reader(texts), num_cpus=0, resources=here)
            rows = read.map(
                _Worker,
                fn_constructor_args=(load, encoder.fingerprint),
                compute=pool,
                num_cpus=1,
                num_gpus=gpus or None,
            )
            try:
                for row in rows.iter_rows():
                    yield np.frombuffer(row["vectors"], dtype=np.float32).reshape(row["count"], encoder.dim)
            except ray.exceptions.RayError as error:
                raise failure(error) from error


class _Reader:
    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def __call__(self, _: Any) -> Iterator[dict[str, list[list[str]]]]:
        for batch in self._texts():
            yield {"texts": [list(batch)]}


class _Worker:
    def __init__(self, load: Callable[[], Encoder], fingerprint: str) -> None:
        self._encoder = load_checked(load, fingerprint)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        texts = list(row["texts"])
        vectors = self._encoder.encode(texts) if texts else np.empty(0)
        return {"count": len(texts), "vectors": np.ascontiguousarray(vectors, dtype=np.float32).tobytes()}
