"""Files that belong to an index on a cluster, such as its calibration: stored in pieces in an index beside it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import xxhash

from indexes.disk.writing import FileRecord
from indexes.elastic.bulk import Operation
from indexes.interface import DamagedError, IndexesError
from indexes.remote.store import FILES, RemoteStore

PIECE = 1 << 20  # bytes
MOST_BYTES = 1 << 30  # of one file
SEVERAL = 8  # pieces that are read in one request


def put(store: RemoteStore, folder: Path, place: str) -> dict[str, FileRecord]:
    """Store the files of a local folder under `place`; return their records. Raises IndexesError."""
    records, operations = {}, []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        try:
            data = path.read_bytes()
        except OSError as e:
            raise IndexesError(f"cannot read {path}: {e.strerror}") from None
        name = f"{place}/{path.name}"
        records[name] = FileRecord(len(data), xxhash.xxh3_128_hexdigest(data))
        for key, start in zip(_keys(name, len(data)), range(0, max(1, len(data)), PIECE), strict=True):
            source = {"data": base64.b64encode(data[start : start + PIECE]).decode()}
            operations.append(Operation(orjson.dumps({"index": {"_id": key}}), orjson.dumps(source)))
    store.write_beside(FILES, operations)
    return records


def get(store: RemoteStore, files: Mapping[str, FileRecord], place: str, into: Path) -> None:
    """Write the files under `place` into a local folder. Raises DamagedError where one is not as it was stored."""
    for name, record in files.items():
        if name.rpartition("/")[0] != place:
            continue
        data = b"".join(_pieces(store, name, min(record.bytes, MOST_BYTES)))
        if len(data) != record.bytes or xxhash.xxh3_128_hexdigest(data) != record.xxh3:
            raise DamagedError(f"{store.settings.index}: {name} is not as it was stored: store it again")
        (into / name.rpartition("/")[2]).write_bytes(data)


def _keys(name: str, size: int) -> list[str]:
    return [f"{name}#{number}" for number in range(-(-max(1, size) // PIECE))]


def _pieces(store: RemoteStore, name: str, size: int) -> Iterator[bytes]:
    keys = _keys(name, size)
    for start in range(0, len(keys), SEVERAL):
        for source in store.read_beside(FILES, keys[start : start + SEVERAL]):
            piece = source.get("data")
            yield base64.b64decode(piece) if isinstance(piece, str) else b""
