"""Writes documents to the disk, one folder of immutable files per commit or merge.

`documents.jsonl` holds one JSON object per line (id, text, title, metadata), `offsets.i64` the start of each line
(int64, one more than there are lines), `ids.txt` only the ids, `vectors.f32` the normalised vectors (float32 rows).
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson

from indexes.arrays import normalised
from indexes.disk import faults
from indexes.disk.reading import map_file
from indexes.disk.writing import FileRecord, write
from indexes.interface import BadDocumentError, BadVectorError, Document, Mask, Matrix, check_vectors
from indexes.store.documents import mapped_vectors
from indexes.store.files import SEGMENTS
from indexes.store.records import Manifest, Segment

BATCH = 256  # documents written at a time
Parts = Iterable[bytes | memoryview]


def storable(document: Document) -> Document:
    """Return the document as it will be read back. Raises BadDocumentError if JSON cannot represent it."""
    metadata = document.metadata
    strings = (document.text, document.title, *metadata, *metadata.values())
    try:
        if type(metadata) is dict and all(type(string) is str for string in strings):
            "".join(strings).encode()
            return document
        (document.text + document.title).encode()
        metadata = orjson.loads(orjson.dumps(dict(metadata), option=orjson.OPT_NON_STR_KEYS))
    except (TypeError, UnicodeEncodeError) as e:
        raise BadDocumentError(f"document {document.id!r} cannot be stored: {e}") from None
    return Document(document.id, document.text, document.title, metadata)


def own_vectors(manifest: Manifest, vectors: Matrix | None, ids: Sequence[str]) -> Matrix | None:
    """Return the vectors of new documents as they are stored, with length 1. Raises BadVectorError."""
    encoder = manifest.encoder
    if (vectors is None) != (encoder is None):
        raise BadVectorError("pass vectors if and only if the collection has an encoder")
    if vectors is None or encoder is None:
        return None
    return normalised(check_vectors(vectors, encoder.dim, ids))


def write_segment(
    directory: Path,
    name: str,
    documents: Sequence[Document],
    vectors: Sequence[Matrix],
    after: Sequence[str] = (),
    source: Path | None = None,
) -> dict[str, FileRecord]:
    """Write documents as one segment, after those of the segments `after`; return the files' records.

    `vectors` are blocks (float32 [n, dim]) that together have one row per document. `source`: the directory of the
    segments `after`, if it is not `directory`. Raises OSError.
    """
    earlier = [(source or directory) / SEGMENTS / segment for segment in after]
    lengths: list[int] = []
    content: dict[str, Parts] = {
        "documents.jsonl": itertools.chain(_blocks(earlier, "documents.jsonl"), _lines(documents, lengths)),
        # The order in this dictionary matters: writing the lines fills `lengths`, which the offsets need.
        "offsets.i64": _offsets(earlier, lengths),
        "ids.txt": _ids(earlier, [d.id for d in documents]),
    }
    if vectors or any((old / "vectors.f32").exists() for old in earlier):
        new = (np.ascontiguousarray(block, dtype="<f4").data for block in vectors)
        content["vectors.f32"] = itertools.chain(_blocks(earlier, "vectors.f32"), new)
    return _write_folder(directory, name, content)


def copy_segment(
    directory: Path, name: str, segments: Sequence[Segment], ids: Sequence[str], live: Mask
) -> dict[str, FileRecord]:
    """Write the live rows of `segments` as one new segment; return the files' records.

    `live` (bool [rows]) marks the live rows; `ids` are the ids of all rows. Nothing is decoded, and hardly any memory
    is used: runs of live rows are copied from mapped files. Raises OSError, DamagedError.
    """
    folders = [directory / SEGMENTS / s.name for s in segments]
    offsets = [np.fromfile(f / "offsets.i64", dtype="<i8") for f in folders]
    parts = np.split(live, np.cumsum([s.rows for s in segments])[:-1])
    sources = [(f, o, list(_runs(part))) for f, o, part in zip(folders, offsets, parts, strict=True)]
    lengths = np.concatenate([np.diff(o)[part] for o, part in zip(offsets, parts, strict=True)])
    content: dict[str, Parts] = {
        "documents.jsonl": (
            memoryview(map_file(f / "documents.jsonl"))[o[a] : o[b]]
            for f, o, runs in sources
            for a, b in runs
        ),
        "offsets.i64": [np.concatenate([[0], np.cumsum(lengths)]).astype("<i8").data],
        "ids.txt": ["\n".join(itertools.compress(ids, live.tolist())).encode()],
    }
    if (folders[0] / "vectors.f32").exists():
        content["vectors.f32"] = (
            mapped_vectors(f).reshape(len(o) - 1, -1)[a:b].data for f, o, runs in sources for a, b in runs
        )
    return _write_folder(directory, name, content)


def _runs(live: Mask) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(live, prepend=False, append=False))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _write_folder(directory: Path, name: str, content: Mapping[str, Parts]) -> dict[str, FileRecord]:
    folder = directory / SEGMENTS / name
    folder.mkdir(parents=True, exist_ok=True)
    records = {}
    for file, parts in content.items():
        faults.point("segment.file")
        records[f"{SEGMENTS}/{name}/{file}"] = write(folder / file, parts)
    return records


def _blocks(folders: Sequence[Path], name: str) -> Iterator[bytes]:
    for folder in folders:
        with (folder / name).open("rb") as file:
            while block := file.read(1 << 22):
                yield block


def _lines(documents: Sequence[Document], lengths: list[int]) -> Iterator[bytes]:
    """Yield documents' lines and append their lengths; a list of them would take as much memory as the corpus."""
    option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    for start in range(0, len(documents), BATCH):
        lines = [
            orjson.dumps(
                {"id": d.id, "text": d.text, "title": d.title, "metadata": d.metadata}, option=option
            )
            for d in documents[start : start + BATCH]
        ]
        lengths += map(len, lines)
        yield b"".join(lines)


def _offsets(earlier: Sequence[Path], lengths: Iterable[int]) -> Iterator[memoryview]:
    begin = 0
    for folder in earlier:
        offsets = np.fromfile(folder / "offsets.i64", dtype="<i8")
        yield (offsets[:-1] + begin).data
        begin += int(offsets[-1])
    yield np.fromiter(itertools.accumulate(lengths, initial=begin), dtype="<i8").data


def _ids(earlier: Sequence[Path], ids: Sequence[str]) -> Iterator[bytes]:
    for number, folder in enumerate(earlier):
        if number:
            yield b"\n"
        yield from _blocks([folder], "ids.txt")
    if ids:
        yield (b"\n" if earlier else b"") + "\n".join(ids).encode()
