"""The encoder that an index was built with: found, loaded and checked against the index's fingerprint."""

import contextlib
import heapq
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from indexes.address import Address
from indexes.interface import BackendUnavailableError, EncoderMismatchError, Matrix
from indexes.store.files import ENCODER
from indexes.store.records import EncoderRecord
from indexes.writer import Writer
from linker.base.errors import InputError, LinkerError
from linker.encoders.interface import Encoder, encode_queries
from linker.encoders.loading import load_encoder, load_own
from linker.encoders.model_folder import GRAPH
from linker.encoders.onnx_checks import read_graph

BESIDE = "../"  # prefix of a model's name if its folder is next to the index


def name_for(directory: Path, encoder: str) -> str:
    """Return the name under which the index in `directory` records a model, given as a name or path.

    A folder next to the index, or deeper, gets a relative path ("../models/minilm"), so that both can move together.
    Any other folder gets its absolute path.
    """
    if not Path(encoder).is_dir():
        return encoder
    folder, home = Path(encoder).resolve(), directory.resolve()
    if Address.of(directory):
        return str(folder)
    return os.path.relpath(folder, home) if home.parent in folder.parents else str(folder)


def _load_named(directory: Path, name: str) -> Encoder:
    path = str((directory.resolve() / name).resolve()) if name.startswith(BESIDE) else name
    return load_encoder(path, fetch=False, light=True)


def open_encoder(directory: Path, record: EncoderRecord, given: Encoder | None = None) -> Encoder:
    """Return the encoder that an index was built with; `given` replaces the one that the index names.

    Raises EncoderMismatchError if its fingerprint does not match the index, LinkerError if it cannot be loaded. The
    check hashes the whole model: do it once.
    """
    inside = record.name.startswith(f"{ENCODER}/")
    if not record.fingerprint:
        return _given_for(directory, record, given)
    encoder = given or (load_own(directory, record.name) if inside else _load_named(directory, record.name))
    fingerprint = encoder.fingerprint
    if fingerprint != record.fingerprint:
        raise EncoderMismatchError(
            f"the encoder {record.name!r} is not the one {directory} was built with (fingerprint "
            f"{fingerprint[:12]}, not {record.fingerprint[:12]}): "
            "name the right one with `encoder`, or rebuild the index"
        )
    return encoder


def _given_for(directory: Path, record: EncoderRecord, given: Encoder | None) -> Encoder:
    """Check and return `given` for an index that names no encoder, since its vectors were computed elsewhere."""
    if given is None:
        raise BackendUnavailableError(
            f"the vectors of {directory} were computed elsewhere, so query texts cannot be encoded: give query vectors "
            "(--query-vectors, `vectors=`), name the encoder that made them with `encoder`, or use `mode` bm25"
        )
    if given.dim != record.dim:
        raise EncoderMismatchError(
            f"the encoder makes vectors of {given.dim} dimensions, but those of {directory} have {record.dim}: "
            "name the one that made them"
        )
    return given


class Turns:
    """A lock for work of known size: the smallest job goes next, so that a query overtakes waiting batches."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int]] = []  # (size, number), a heap
        self._count = itertools.count()
        self._is_taken = False

    @contextlib.contextmanager
    def of(self, size: int) -> Iterator[None]:
        """Hold the lock for work of this size. It is not reentrant."""
        with self._changed:
            turn = (size, next(self._count))
            heapq.heappush(self._waiting, turn)
            try:
                self._changed.wait_for(lambda: not self._is_taken and self._waiting[0] == turn)
            except BaseException:
                self._waiting.remove(turn)
                heapq.heapify(self._waiting)
                self._changed.notify_all()
                raise
            heapq.heappop(self._waiting)
            self._is_taken = True
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()


class OwnEncoder:
    """An index's encoder, loaded on first use; any number of threads may use it, one after the other."""

    def __init__(self, given: Encoder | None = None) -> None:
        """`given` replaces the encoder that the index names, and must have its fingerprint."""
        self._given = given
        # by fingerprint: another index may replace the one in the directory
        self._loaded: dict[str, Encoder] = {}
        self._loading = threading.Lock()
        self._turns = Turns()  # tokenizers and models are not thread-safe

    @property
    def is_given(self) -> bool:
        """Whether an encoder was given, which is then assumed to be the index's."""
        return self._given is not None

    def of(self, directory: Path, record: EncoderRecord | None) -> Encoder:
        """Return the encoder that the manifest names. Raises BackendUnavailableError, and as `open_encoder` does."""
        if record is None:
            raise BackendUnavailableError("the index was built without an encoder")
        with self._loading:
            if record.fingerprint not in self._loaded:
                self._loaded[record.fingerprint] = open_encoder(directory, record, self._given)
            return self._loaded[record.fingerprint]

    def encode(
        self, directory: Path, record: EncoderRecord | None, texts: Sequence[str], *, queries: bool = False
    ) -> Matrix:
        """Return the vectors of documents, or of queries, float32 [n, dim]. Raises the same errors as `of`."""
        encoder = self.of(directory, record)
        with self._turns.of(sum(map(len, texts))):
            return encode_queries(encoder, texts) if queries else encoder.encode(texts)

    def embed(self, directory: Path, record: EncoderRecord | None, texts: Sequence[str]) -> Matrix:
        """Return the vectors of a search's queries. Raises BackendUnavailableError without a working encoder."""
        try:
            return self.encode(directory, record, texts, queries=True)
        except LinkerError as e:
            raise BackendUnavailableError(str(e)) from e

    def forget(self) -> None:
        """Release the loaded encoders."""
        with self._loading:
            self._loaded.clear()


def graph_damage(directory: Path, record: EncoderRecord | None) -> list[str]:
    """Return the problem with the graph of an index's own encoder, if any; it is read, not run."""
    if record is None or not record.name.startswith(f"{ENCODER}/"):
        return []
    path = directory / record.name / GRAPH
    try:
        if path.is_file():
            read_graph(path)
    except InputError as e:
        return [str(e)]
    return []


def export_own(directory: Path) -> Path:
    """Export an index's encoder to ONNX and commit it; return the path of the graph.

    Raises InputError if the index has no encoder of its own, or it cannot be exported, MissingExtraError without the
    required packages, LockedError if another process is writing to the index.
    """
    from linker.encoders.onnx_export import export

    with Writer.open(directory) as writer:
        record = writer.manifest.encoder
        if record is None or not record.name.startswith(f"{ENCODER}/"):
            named = f"its encoder is {record.name}" if record else "it has none"
            raise InputError(f"{directory} holds no encoder of its own to export: {named}")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "encoder")
            shutil.copytree(directory / record.name, folder)
            export(folder)
            name = f"{record.fingerprint[:11]}-onnx"
            writer.store_encoder(name, folder)
        return directory / ENCODER / name / GRAPH
