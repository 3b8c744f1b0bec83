"""The records that make up a manifest: the content of one committed generation of an index."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indexes.disk.writing import FileRecord
from indexes.text.parameters import AnalysisSettings, Bm25Parameters

FORMAT = 3  # the only format that is read


@dataclass(frozen=True, slots=True)
class Segment:
    """The documents of one commit or merge: the name of their folder under `segments/`, and their number of rows."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class EncoderRecord:
    """The encoder that computed the vectors: its name or path for loading, its fingerprint, its dimension.

    An empty fingerprint: the vectors were computed elsewhere by an unknown encoder, and texts cannot be encoded here.
    """

    name: str
    fingerprint: str
    dim: int


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """How far the build has read: the number of records (usable or not) from `sources`, and whether it is complete."""

    complete: bool = True
    position: int = 0
    # For each source: the path as the user gave it, and a string that changes whenever the source's content does.
    sources: tuple[tuple[str, str], ...] = ()
    # The names of the columns for id, text and title, if they are not the default ones.
    columns: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of an index."""

    # "none", or a name in indexes/kinds.py.
    vectors: str = "none"
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    bm25: Bm25Parameters = field(default_factory=Bm25Parameters)
    positions: bool = False  # whether the index has a forward index
    encoder: EncoderRecord | None = None
    generation: int = 0
    documents: int = 0  # number of live documents
    quarantined: int = 0
    segments: tuple[Segment, ...] = ()
    build: BuildRecord = field(default_factory=BuildRecord)
    search: Mapping[str, Any] = field(default_factory=dict)  # settings chosen by `index tune`
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    # Settings of the server that hosts BM25, if any.
    elastic: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def embeds(self) -> bool:
        """Whether texts can be encoded like the documents: an encoder is known."""
        return self.encoder is not None and bool(self.encoder.fingerprint)

    @property
    def rows(self) -> int:
        """Number of rows, including removed ones."""
        return sum(s.rows for s in self.segments)

    def only_file(self, folder: str) -> str | None:
        """Return the only file of this generation under `folder/`, or None."""
        return next((name for name in self.files if name.startswith(f"{folder}/")), None)
