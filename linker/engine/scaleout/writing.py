"""Build an index on a cluster in parallel: Ray's workers encode documents and send them to the servers themselves.

One process leads: it reads the corpora, gives each document its stamp, which is its version on the servers, and
commits. So it does not matter which worker sends a batch, when, or how often: if a worker or its machine dies,
another takes its batch, and the servers keep each document once, in its first version in the corpora.
"""

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.cluster.sending import DirectSender
from indexes.cluster.writer import RemoteWriter
from indexes.interface import Document, IndexesError, Matrix
from indexes.store.records import Manifest
from linker.base.errors import LinkerError
from linker.encoders.interface import Encoder
from linker.engine.scaleout.cluster import check_gpus, connection, failure, import_ray, load_checked, workers

PATIENCE = 60.0  # seconds without a finished batch after which the workers are counted again
AHEAD = 2  # maximum number of batches in flight per worker
RETRIES = 20  # maximum number of repetitions of a batch whose worker or machine has died


@dataclass(frozen=True, slots=True)
class WorkerBuild:
    """A worker's part of a build: the generation to write to, and the encoder (None if there are no vectors)."""

    settings: ElasticSettings
    generation: str
    manifest: Manifest
    load: Callable[[], Encoder] | None
    gpus: float = 0  # Ray's GPUs per worker
    key: str = field(default_factory=lambda: secrets.token_hex(8))


class RaySender:
    """Hands batches to Ray's workers, far enough ahead that no worker waits; `workers` counts the workers."""

    def __init__(self, ray: Any, job: WorkerBuild) -> None:
        self._ray, self._job, self._gpus = ray, ray.put(job), job.gpus
        # Given as an option rather than in the task's definition: otherwise Ray ends a worker with a GPU after each
        # batch.
        self._task = ray.remote(_write).options(num_cpus=1, num_gpus=job.gpus or None, max_retries=RETRIES)
        self._pending: list[Any] = []
        self._count()

    def _count(self) -> None:
        self.workers = workers(self._ray, self._gpus)

    def put(self, documents: Sequence[Document], vectors: Matrix | None, first: int) -> None:
        """Hand out a batch; wait while enough are in flight. Raises LinkerError if a worker has failed."""
        while len(self._pending) >= AHEAD * self.workers:
            self._wait()
        self._pending.append(self._task.remote(self._job, documents, first))

    def flush(self) -> None:
        """Wait until the servers have acknowledged all batches. Raises the errors of `put`."""
        while self._pending:
            self._wait()
        self._count()  # the number of workers changes as machines come and go

    def _wait(self) -> None:
        done, self._pending = self._ray.wait(self._pending, timeout=PATIENCE)
        if not done:
            self._count()  # raises if the last machine with a GPU is gone
        try:
            self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            raise failure(error) from error

    def close(self) -> None:
        """Cancel the batches that are still in flight."""
        for batch in self._pending:
            self._ray.cancel(batch, force=True)


@contextlib.contextmanager
def by_many(writer: RemoteWriter, load: Callable[[], Encoder] | None, gpus: float = 0) -> Iterator[RaySender]:
    """Within the context, have Ray's workers encode and send the documents that a build passes to its writer.

    Each worker takes `gpus` of Ray's GPUs. Without the environment variable RAY_ADDRESS, which names a cluster, Ray
    is started on this machine and can be reached only from it. Raises MissingExtraError without Ray, LinkerError if
    it does not start or has too few GPUs.
    """
    ray = import_ray()
    with connection(ray):
        check_gpus(ray, gpus)
        settings, generation = writer.target
        sender = RaySender(ray, WorkerBuild(settings, generation, writer.manifest, load, gpus))
        writer.sender = sender
        try:
            yield sender
        finally:
            sender.close()


class _SendingWorker:
    def __init__(self, job: WorkerBuild) -> None:
        record = job.manifest.encoder
        self._encoder = load_checked(job.load, record.fingerprint) if job.load and record else None
        self.index = ClusterIndex(job.settings, job.generation)
        self._sender = DirectSender(self.index, job.manifest)

    def write(self, documents: Sequence[Document], first: int) -> None:
        """Return once the servers have acknowledged the documents; waits for a busy server (429)."""
        encoder = self._encoder
        vectors = encoder.encode([d.full_text for d in documents]) if encoder else None
        self._sender.put(documents, vectors, first)
        self._sender.flush()


_working: dict[str, _SendingWorker] = {}  # key of a build → this process's worker for it


def _write(job: WorkerBuild, documents: Sequence[Document], first: int) -> None:
    """Encode and send a batch, in a Ray process, which keeps its encoder for the next batch."""
    try:
        if job.key not in _working:
            while _working:
                _working.popitem()[1].index.close()
            _working[job.key] = _SendingWorker(job)
        _working[job.key].write(documents, first)
    except (IndexesError, LinkerError) as error:
        raise LinkerError(f"on {socket.gethostname()}, {error}") from error
