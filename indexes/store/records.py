"""What one committed generation of an index consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indexes.disk.writing import FileRecord

FORMAT = 2


READ = (1, 2)  # 1: BM25 was tantivy's; its texts are indexed anew whenever such an index is opened


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
