"""What one committed generation consists of. The manifest is written last: replacing it is the commit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import xxhash

from indexes.interface import DamagedError, FormatVersionError, IndexesError

FORMAT = 2
READ = (1, 2)  # 1: BM25 was tantivy's; its texts are indexed anew whenever such an index is opened
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size and checksum (xxh3, 128 bits, hexadecimal) of one file."""

    bytes: int
    xxh3: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One commit's documents: folder name under `segments/` and number of rows."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class EncoderRecord:
    """The encoder the vectors came from: name or path to load it by, fingerprint, dimension."""

    name: str
    fingerprint: str
    dim: int


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """How far the build has read: records taken from `sources` (good and bad ones), and whether it ended."""

    complete: bool = True
    position: int = 0
    sources: tuple[tuple[str, str], ...] = ()  # (path as given, what tells it from a changed one)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of an index."""

    vectors: str = (
        "none"  # none | flat | auto | hnsw | pq | ivfpq | elastic-flat | elastic-hnsw | elastic-int8_hnsw
    )
    language: str = "english"
    encoder: EncoderRecord | None = None
    generation: int = 0
    documents: int = 0  # live ones
    quarantined: int = 0
    segments: tuple[Segment, ...] = ()
    build: BuildRecord = field(default_factory=BuildRecord)
    search: Mapping[str, Any] = field(default_factory=dict)  # what `index tune` chose
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    elastic: Mapping[str, Any] = field(default_factory=dict)  # where the BM25 side is, if it is on a server
    format: int = FORMAT

    @property
    def rows(self) -> int:
        """Number of rows, removed ones included."""
        return sum(s.rows for s in self.segments)

    def only_file(self, folder: str) -> str | None:
        """Return the one file of this generation under `folder/`, if there is one."""
        return next((name for name in self.files if name.startswith(f"{folder}/")), None)


def dump(manifest: Manifest) -> bytes:
    """Serialise: a first line with the checksum of all that follows, so that any flipped byte shows."""
    body = orjson.dumps(
        dataclasses.asdict(manifest),
        option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS,
    )[1:]
    return b'{"xxh3": "%s",' % xxhash.xxh3_128_hexdigest(body).encode() + body


def load(directory: Path, name: str = NAME) -> Manifest:
    """Read and check `directory`'s manifest, or one kept under another name.

    Raises IndexesError, DamagedError, FormatVersionError.
    """
    path = directory / name
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise IndexesError(f"{directory} holds no index: build one with `linker index build`") from None
    except OSError as e:
        raise IndexesError(f"cannot read {path}: {e.strerror}") from None
    head, comma, body = data.partition(b",")
    if head + comma != b'{"xxh3": "%s",' % xxhash.xxh3_128_hexdigest(body).encode():
        raise DamagedError(
            f"{path} is damaged (its checksum does not match): restore it from a backup or rebuild"
        )
    values = orjson.loads(data)
    del values["xxh3"]
    if values["format"] not in READ:
        raise FormatVersionError(
            f"{path} has format {values['format']}, this version reads {', '.join(map(str, READ))}: "
            "use the linker that wrote it, or rebuild the index"
        )
    return _from_json(values)


def _from_json(values: dict[str, Any]) -> Manifest:
    build = values.pop("build")
    encoder = values.pop("encoder")
    return Manifest(
        encoder=EncoderRecord(**encoder) if encoder else None,
        build=BuildRecord(build["complete"], build["position"], tuple((p, n) for p, n in build["sources"])),
        segments=tuple(Segment(**s) for s in values.pop("segments")),
        files={name: FileRecord(**record) for name, record in values.pop("files").items()},
        **values,
    )
