"""Two auxiliary indexes of an index that is only on a cluster: one for unusable records, one for files in pieces."""

import base64
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import xxhash

from indexes.cluster.bulk import Operation
from indexes.cluster.index import FILES, QUARANTINE, ClusterIndex
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, IndexesError

PIECE = 1 << 20  # bytes
MOST_BYTES = 1 << 30  # maximum number of bytes per file
SEVERAL = 8  # pieces read per request


def put(index: ClusterIndex, folder: Path, place: str) -> dict[str, FileRecord]:
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
            operations.append(
                _operation(key, {"data": base64.b64encode(data[start : start + PIECE]).decode()})
            )
    write(index, FILES, operations)
    return records


def get(index: ClusterIndex, files: Mapping[str, FileRecord], place: str, into: Path) -> None:
    """Write the files under `place` into a local folder. Raises DamagedError if one does not match its record."""
    for name, record in files.items():
        if name.rpartition("/")[0] != place:
            continue
        data = b"".join(_pieces(index, name, min(record.bytes, MOST_BYTES)))
        if len(data) != record.bytes or xxhash.xxh3_128_hexdigest(data) != record.xxh3:
            raise DamagedError(
                f"{index.settings.index}: {name} has changed since it was stored: store it again"
            )
        (into / name.rpartition("/")[2]).write_bytes(data)


def _keys(name: str, size: int) -> list[str]:
    return [f"{name}#{number}" for number in range(-(-max(1, size) // PIECE))]


def _pieces(index: ClusterIndex, name: str, size: int) -> Iterator[bytes]:
    keys = _keys(name, size)
    for start in range(0, len(keys), SEVERAL):
        with index.errors():
            part = keys[start : start + SEVERAL]
            docs = index.patient.mget(index=f"{index.settings.index}{FILES}", ids=part)["docs"]
        for doc in docs:
            piece = doc.get("_source", {}).get("data")
            yield base64.b64decode(piece) if isinstance(piece, str) else b""


def quarantine(index: ClusterIndex, lines: Sequence[bytes], *, once: bool = False) -> None:
    """Store unusable records, each a line of JSON; with `once`, no line is stored twice."""
    keys = (xxhash.xxh3_128_hexdigest(line) if once else secrets.token_hex(16) for line in lines)
    records = ({"record": line.decode(errors="replace")} for line in lines)
    write(index, QUARANTINE, list(map(_operation, keys, records)))


def quarantined(index: ClusterIndex) -> int:
    """Return the number of unusable records."""
    with index.errors():
        name = f"{index.settings.index}{QUARANTINE}"
        return int(index.client.count(index=name, ignore_unavailable=True)["count"])


def _operation(key: str, source: Mapping[str, Any]) -> Operation:
    return Operation(orjson.dumps({"index": {"_id": key}}), orjson.dumps(source))


def write(index: ClusterIndex, suffix: str, operations: Sequence[Operation]) -> None:
    """Write to the auxiliary index with this suffix, which is created if it is missing."""
    name = f"{index.settings.index}{suffix}"
    with index.errors():
        if not index.client.indices.exists(index=name):
            mappings = {"dynamic": False, "properties": {}}
            index.patient.indices.create(
                index=name, mappings=mappings, settings={"number_of_replicas": index.settings.replicas}
            )
    bulk = index.sending(name)
    for operation in operations:
        bulk.put(operation)
    bulk.flush()
    bulk.close()
    with index.errors():
        index.patient.indices.refresh(index=name)
