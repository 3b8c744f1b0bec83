"""Merges segments in the background: writers wait only while merged files are moved and committed, readers never.

A merge reads segments that a generation lists and writes their replacements to the folder `merging/`. The commit
links all other files unchanged, so other changes may be made meanwhile; rows keep their numbers, and removed
documents their rows. If the segments are gone by then, as after a compaction, the merge is dropped.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from indexes import carrying
from indexes.anywhere import AnyCollection
from indexes.collection import Collection, SharedParts
from indexes.committing import COMMITTED, replace
from indexes.disk import faults, writing
from indexes.disk.writing import FileRecord
from indexes.interface import IndexesError
from indexes.store import files as storage
from indexes.store import generations, ownership
from indexes.store import manifest as manifests
from indexes.store.documents import StoredSegment
from indexes.store.records import Manifest, Segment
from indexes.store.segments import write_segment
from indexes.text import forward, postings, segment_files
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex

NAME = "000000"  # name of the merged segment before the commit
WAIT = 30.0  # seconds that the commit waits for other writers

Open = Callable[[], AnyCollection | None]
Publish = Callable[[Callable[[], Collection | None]], None]


@dataclass(frozen=True, slots=True)
class _Text:
    """Merged postings, or a merged forward index: the file `new`, which replaces the files `old`."""

    old: Sequence[str]  # file names below text/N/
    new: str  # file name below text/N/
    opened: Any

    @property
    def path(self) -> Path:
        """The path of the merged file before the commit."""
        path: Path = self.opened.path
        return path


@dataclass(frozen=True, slots=True)
class _Merge:
    """The replacement of some segments of a generation, on the disk and opened."""

    documents: Sequence[Segment]
    files: dict[str, FileRecord]  # files of the old segments
    records: dict[str, FileRecord]  # files of the new segment
    stored: StoredSegment | None
    texts: Sequence[_Text]

    def fits(self, manifest: Manifest) -> bool:
        """Return whether a generation has all the merged segments."""
        listed = {_in_text(name) for name in manifest.files if name.startswith(f"{storage.TEXT}/")}
        run, count = tuple(self.documents), len(self.documents)
        return (
            any(manifest.segments[n : n + count] == run for n in range(len(manifest.segments) + 1))
            and self.files.items() <= manifest.files.items()
            and all(name in listed for text in self.texts for name in text.old)
        )

    def parts(self, name: str) -> SharedParts:
        """Return the opened parts for a generation in which the documents are the segment `name`."""
        return SharedParts(
            {Segment(name, self.stored.rows): self.stored} if self.stored else {},
            {text.path.name: text.opened for text in self.texts if text.path.suffix == postings.SUFFIX},
            {text.path.name: text.opened for text in self.texts if text.path.suffix == forward.SUFFIX},
        )


def _in_text(name: str) -> str:
    return name.split("/", 2)[2]


def _texts(collection: Collection) -> Iterator[tuple[str, Sequence[Any], ModuleType, carrying.MergeLimits]]:
    text, terms = collection.text, collection.stored_forward
    if isinstance(text, FieldsIndex):
        for folder, index in text.folders.items():
            yield f"{folder}/", index.segments, postings, carrying.POSTINGS
    elif isinstance(text, Bm25Index):
        yield "", text.segments, postings, carrying.POSTINGS
    if terms:
        yield "", terms.segments, forward, carrying.TOKENS


def _due(collection: Collection) -> tuple[Sequence[Segment], list[tuple[str, Sequence[Any], ModuleType]]]:
    if not collection.manifest.build.complete:
        return (), []
    segments = collection.manifest.segments
    documents = segments[carrying.due([s.rows for s in segments], carrying.ROWS)]
    texts = [
        (folder, all_[carrying.due([s.size for s in all_], most)], kind)
        for folder, all_, kind, most in _texts(collection)
    ]
    return documents, [text for text in texts if text[1]]


def is_due(collection: Collection) -> bool:
    """Return whether segments of an open generation should be merged in the background."""
    return any(_due(collection))


def merge(now: Open, publish: Publish) -> bool:
    """Merge the segments that are due in the generation that `now` returns; return whether anything was committed.

    `publish` is called while nobody else can write, and must call its argument, which commits and returns the new
    generation, opened, if `now` returns the previous one. Raises OSError, LockedError, and DamagedError if a file to
    be copied differs from what was written.
    """
    collection = now()
    if not isinstance(collection, Collection) or not is_due(collection):
        return False
    directory = collection.directory
    with storage.merge_lock(directory) as left_over:
        if left_over:
            ownership.sweep(directory, (), [storage.MERGING])
    with contextlib.suppress(FileExistsError):
        (directory / storage.MERGING).mkdir()
    with storage.merge_lock(directory) as locked:
        if not locked:  # another process is merging
            return False
        try:
            ownership.refuse_links(directory)
            merged = _replacement(collection, directory / storage.MERGING)
            return merged is not None and _commit(directory, merged, now, publish)
        finally:
            ownership.sweep(directory, (), [storage.MERGING])


def _replacement(collection: Collection, folder: Path) -> _Merge | None:
    """Return the replacement of the chosen segments; None if a writer has deleted them meanwhile."""
    directory, listed = collection.directory, collection.manifest.files
    documents, texts = _due(collection)
    prefixes = tuple(f"{storage.SEGMENTS}/{segment.name}/" for segment in documents)
    files = {name: record for name, record in listed.items() if name.startswith(prefixes)} if prefixes else {}
    records, stored = {}, None
    try:
        if documents:
            storage.check(directory, files)
            names = [segment.name for segment in documents]
            records = write_segment(folder, NAME, [], [], names, directory)
            stored = StoredSegment(folder, Segment(NAME, sum(s.rows for s in documents)))
            stored.ids.rows("")  # this hashes and sorts the ids now, while nobody is waiting
            faults.point("merge.documents")
        merged = [_merged_text(*text, folder) for text in texts]
    except (OSError, IndexesError):
        last = manifests.load(directory).files
        if files.items() <= last.items():
            raise
        return None
    # The commit flushes these files again, after they have moved; their content is then already on the disk.
    writing.flush([*(folder / name for name in records), *(text.path for text in merged)])
    return _Merge(documents, files, records, stored, merged)


def _merged_text(subfolder: str, segments: Sequence[Any], kind: ModuleType, folder: Path) -> _Text:
    segment_files.check_content(segments)
    target = folder / storage.TEXT / subfolder
    target.mkdir(parents=True, exist_ok=True)
    new = kind.write(kind.merged(segments), target)
    faults.point("merge.text")
    return _Text([subfolder + s.path.name for s in segments], subfolder + new.path.name, new)


def _commit(directory: Path, merged: _Merge, now: Open, publish: Publish) -> bool:
    """Commit a merge over the last generation; return whether it still applies."""
    # This raises if the index no longer exists; otherwise, locking would leave a lock file behind.
    manifests.load(directory)
    with storage.write_lock(directory, WAIT):
        old = manifests.load(directory)
        if not merged.fits(old):
            return False
        ownership.refuse_links(directory)
        generations.sweep(directory, old, COMMITTED)
        name, files, segments = f"{old.generation + 1:06d}", dict(old.files), old.segments
        moved_from = {text.path.parent for text in merged.texts}
        if merged.stored:
            moved_from.add(merged.stored.folder.parent)
            segments = _move_documents(directory, name, merged, files, segments)
        if merged.texts:
            replace(files, storage.TEXT, _move_texts(directory, name, merged.texts, files))
        manifest = dataclasses.replace(old, generation=old.generation + 1, segments=segments, files=files)
        faults.point("merge.prepared")
        # The previous generation is not retained, since this one has the same content.

        def commit() -> Collection | None:
            opened, new = now(), None
            if isinstance(opened, Collection) and opened.manifest == old:
                new = opened.with_merged(manifest, merged.parts(name))
            storage.replace_manifest(directory, manifest, old.files, moved_from)
            return new

        publish(commit)
        generations.sweep(directory, manifest, COMMITTED)
        faults.point("merge.ended")
    return True


def _move_documents(
    directory: Path, name: str, merged: _Merge, files: dict[str, FileRecord], old: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Move the merged documents into place, and list them in `files`; return all segments."""
    assert merged.stored is not None
    target = directory / storage.SEGMENTS / name
    merged.stored.folder.rename(target)
    merged.stored.folder, merged.stored.path = target, target / merged.stored.path.name
    for segment in merged.documents:
        replace(files, f"{storage.SEGMENTS}/{segment.name}", {})
    files.update({file.replace(NAME, name, 1): record for file, record in merged.records.items()})
    begin = old.index(merged.documents[0])
    return (*old[:begin], Segment(name, merged.stored.rows), *old[begin + len(merged.documents) :])


def _move_texts(
    directory: Path, name: str, texts: Sequence[_Text], files: dict[str, FileRecord]
) -> dict[str, FileRecord]:
    """Move merged texts into the folder `text/name` and link all others there; return the files of the folder."""
    merged = {file for text in texts for file in text.old}
    prefix, target = f"{storage.TEXT}/{name}", directory / storage.TEXT / name
    old = [file for file in files if file.startswith(f"{storage.TEXT}/") and _in_text(file) not in merged]
    names = [*map(_in_text, old), *(text.new for text in texts)]
    folders = {(target / file).parent for file in names} | {target}
    for folder in sorted(folders):
        folder.mkdir(exist_ok=True)
    for file in old:
        writing.link_or_copy(directory / file, target / _in_text(file))
    for text in texts:
        text.path.rename(target / text.new)
    new = {f"{prefix}/{t.new}": FileRecord((target / t.new).stat().st_size, t.path.stem) for t in texts}
    return {f"{prefix}/{_in_text(file)}": files[file] for file in old} | new


def settle(directory: Path) -> None:
    """Merge segments left by commits in an index that nobody has open. Raises the same errors as `merge`."""
    opened: list[Collection] = []
    if carrying.due([s.rows for s in manifests.load(directory).segments], carrying.ROWS) != slice(0, 0):
        opened.append(Collection.open(directory, verify=False))
    while opened and merge(lambda: opened[-1], lambda commit: opened.extend(filter(None, [commit()]))):
        pass
