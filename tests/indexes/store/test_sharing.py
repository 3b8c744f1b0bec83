"""Files that an open generation shares with the next one, against a generation opened from scratch."""

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from indexes import carrying, merging
from indexes.collection import Collection
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, Document, DuplicateIdError, UnknownIdError
from indexes.store import files as storage
from indexes.store import generations
from indexes.store.documents import DocumentStore, GrowingVectors, read_rows
from indexes.store.records import EncoderRecord, Manifest, Segment
from indexes.store.segments import write_segment
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import Bm25Parameters, Field
from indexes.writer import Writer
from tests.helpers import WORDS, HashEncoder

ENCODER = HashEncoder()
RECORD = EncoderRecord("hash", ENCODER.fingerprint, ENCODER.dim)
IDS = [f"d{n}" for n in range(12)]
TEXT = st.lists(st.sampled_from(WORDS[:9]), min_size=1, max_size=5).map(" ".join)
BATCH = st.dictionaries(st.sampled_from(IDS), TEXT, min_size=1, max_size=4)


def add(writer: Writer, texts: dict[str, str]) -> None:
    documents = [Document(id_, text, metadata={"n": len(text)}) for id_, text in texts.items()]
    writer.add(documents, ENCODER.encode(list(texts.values())))


def seen(collection: Collection) -> list[object]:
    """Return everything that a reader finds."""
    assert collection.stored_forward is not None or not collection.manifest.rows
    words = [*WORDS[:9], "absent"]
    forward = collection.forward
    found = [
        collection.hybrid.search(words, 5, mode=mode, embed=ENCODER.encode).hits for mode in ("bm25", "dense")
    ]
    return [
        [[(hits.ids, hits.scores.tolist()) for hits in answers] for answers in found],
        list(collection.matching()),
        list(collection.rows.ids),
        collection.rows.find([*IDS, "absent"]).tolist(),
        collection.rows.dead.tolist(),
        collection.fields,
        [block.tolist() for block in collection.documents.vectors(ENCODER.dim)],
        [segment.tokens.tolist() for segment in forward.segments],
    ]


class SharedAgainstOpenedAgain(RuleBasedStateMachine):
    """One reader continues from its last generation, writers from the reader's; the oracle reopens all files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.patches: list[Any] = [
            mock.patch.object(os, "fsync"),
            mock.patch.object(carrying, "ROWS", carrying.MergeLimits(4, 6, 20)),
            mock.patch.object(carrying, "POSTINGS", carrying.MergeLimits(4, 6, 40)),
            mock.patch.object(carrying, "TOKENS", carrying.MergeLimits(4, 6, 40)),
            mock.patch.object(carrying, "SETTLED", 1),
        ]
        for patch in self.patches:
            patch.start()

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()
        shutil.rmtree(self.folder)

    @initialize(fields=st.booleans(), first=BATCH)
    def create(self, fields: bool, first: dict[str, str]) -> None:
        bm25 = Bm25Parameters(fields=(Field("title"), Field("text"))) if fields else Bm25Parameters()
        manifest = Manifest(vectors="flat", bm25=bm25, positions=True, encoder=RECORD)
        with Writer.create(self.folder / "i", manifest, keep=2) as writer:
            add(writer, first)
            writer.commit()
        self.reader = Collection.open(self.folder / "i")
        self.live = {*first}

    def writer(self) -> contextlib.AbstractContextManager[Writer]:
        return Writer.open(self.folder / "i", before=lambda: self.reader)

    @rule(batch=BATCH, replace=st.booleans())
    def add(self, batch: dict[str, str], replace: bool) -> None:
        with self.writer() as writer:
            if replace:
                writer.remove(sorted(writer.present(list(batch))))
            elif self.live & batch.keys():
                with pytest.raises(DuplicateIdError):
                    add(writer, batch)
                return
            add(writer, batch)
            writer.commit()
        self.live |= batch.keys()

    @rule(ids=st.sets(st.sampled_from(IDS), min_size=1, max_size=3))
    def remove(self, ids: set[str]) -> None:
        with self.writer() as writer:
            if not ids <= self.live:
                with pytest.raises(UnknownIdError):
                    writer.remove(sorted(ids))
                return
            writer.remove(sorted(ids))
            writer.commit()
        self.live -= ids

    @rule()
    def compact(self) -> None:
        with self.writer() as writer:
            writer.compact()

    @rule(follows=st.booleans())
    def merge(self, follows: bool) -> None:
        opened = [self.reader]
        merging.merge(lambda: opened[-1], lambda commit: opened.extend(filter(None, [commit()])))
        if follows:
            self.reader = opened[-1]

    @rule()
    def check_out(self) -> None:
        for number in generations.kept(self.folder / "i", self.reader.manifest):
            generations.checkout(self.folder / "i", number)
            self.live = {document.id for document in Collection.open(self.folder / "i").matching()}
            return

    @rule()
    def open_again(self) -> None:
        self.reader = Collection.open(self.folder / "i")

    @invariant()
    def a_reader_that_goes_on_sees_what_a_new_one_does(self) -> None:
        directory, before = self.folder / "i", seen(self.reader)
        later, fresh = Collection.open(directory, before=self.reader), Collection.open(directory)
        assert seen(later) == seen(fresh)
        assert {document.id for document in later.matching()} == self.live
        assert seen(self.reader) == before
        self.reader = later


TestSharing = SharedAgainstOpenedAgain.TestCase
TestSharing.settings = settings(max_examples=10, stateful_step_count=8, deadline=None)


def test_fields_with_positions_are_compacted(tmp_path: Path) -> None:
    """Both keep files in the scratch folder, which is emptied before they are rewritten."""
    bm25 = Bm25Parameters(fields=(Field("title"), Field("text")))
    with Writer.create(tmp_path / "i", Manifest(bm25=bm25, positions=True)) as writer:
        writer.add([Document("a", "rain"), Document("b", "voters")], None)
        writer.commit()
        writer.remove(["a"])
        writer.commit()
        writer.compact()
    found = Collection.open(tmp_path / "i").hybrid.search(["rain", "voters"], 5, mode="bm25").hits
    assert [hits.ids for hits in found] == [(), ("b",)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Collection]:
    """A reader of an index with segments of 8, 4 and 1 documents; a commit merges those no larger than its own."""
    with mock.patch.object(carrying, "FACTOR", 1):
        yield made(tmp_path)


def made(tmp_path: Path, shift: int = 0) -> Collection:
    manifest = Manifest(vectors="flat", encoder=RECORD)
    numbers = itertools.count()
    with Writer.create(tmp_path / "i", manifest) as writer:
        for size in (8, 4, 1):
            add(writer, {f"d{next(numbers)}": WORDS[n + shift] for n in range(size)})
            writer.commit()
    return Collection.open(tmp_path / "i")


def test_the_next_generation_reads_new_files(reader: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = reader.directory
    with Writer.open(directory, before=lambda: reader) as writer:
        add(writer, {"new": "word"})
        writer.commit()
    checked: list[str] = []
    real = storage._damage_of

    def noted(directory: Path, name: str, record: FileRecord, content: bool) -> str | None:
        checked.append(name)
        return real(directory, name, record, content)

    monkeypatch.setattr(storage, "_damage_of", noted)
    later = Collection.open(directory, before=reader)
    kept = [reader.manifest.segments[n].name for n in range(2)]
    assert {name.split("/")[0] for name in checked} == {"segments", "text"}
    assert not [name for name in checked if name.split("/")[1] in kept]
    assert len([name for name in checked if name.endswith(".postings")]) == 1
    assert later.documents.segments[:2] == reader.documents.segments[:2]
    assert isinstance(later.text, Bm25Index)
    assert isinstance(reader.text, Bm25Index)
    assert later.text.segments[0].terms is reader.text.segments[0].terms
    assert reader.rows.find(["new"]).tolist() == [-1]
    assert later.rows.find(["new", "d0"]).tolist() == [13, 0]


def test_vectors_are_extended_in_place_and_never_overwritten(tmp_path: Path) -> None:
    def file(name: str, *values: float) -> tuple[Path, int]:
        np.array(values, dtype="<f4").tofile(tmp_path / name)
        return tmp_path / name, len(values)

    one, two, other = file("one", 1, 2), file("two", 3), file("other", 4)
    growing = GrowingVectors(16, 1)
    first = growing.extend(0, [one])
    second = growing.extend(2, [two])
    merged = growing.extend(0, [file("merged", 1, 2, 3, 5)])
    assert first is not None
    assert second is not None
    assert merged is not None
    assert [first.ravel().tolist(), second.ravel().tolist(), merged.ravel().tolist()] == [
        [1, 2],
        [1, 2, 3],
        [1, 2, 3, 5],
    ]
    assert np.shares_memory(first, merged)
    assert not first.flags.writeable
    assert growing.extend(2, [other]) is None  # 3 is there, and a reader may be using it
    assert growing.extend(0, [file("large", *range(1, 25))]) is None
    assert growing.extend(5, [two]) is None
    assert merged.ravel().tolist() == [1, 2, 3, 5]
    with pytest.raises(DamagedError, match="two is too short"):
        growing.extend(4, [(two[0], 2)])


def test_an_index_built_again_in_the_same_place_shares_nothing(reader: Collection, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "i")
    again = made(tmp_path, shift=1)
    assert [s.name for s in again.manifest.segments] == [s.name for s in reader.manifest.segments]
    assert not reader.shared(again.manifest).documents
    later = Collection.open(tmp_path / "i", before=reader)
    assert [document.text for document in later.matching()] == [d.text for d in again.matching()]


@pytest.mark.parametrize("kind", ["segments/*/documents.jsonl", "segments/*/ids.txt", "text/*/*.postings"])
def test_a_file_that_has_changed_is_not_copied_into_a_new_one(reader: Collection, kind: str) -> None:
    """Nothing would detect it later: the copy has its own checksum."""
    sizes: dict[str, FileRecord] = dict(reader.manifest.files)
    last = min(reader.directory.glob(kind), key=lambda path: path.stat().st_size)
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    with (
        pytest.raises(DamagedError, match=last.name),
        Writer.open(reader.directory, before=lambda: reader) as writer,
    ):
        add(writer, {"new": WORDS[0]})
        writer.commit()
    assert Collection.open(reader.directory, verify=False, before=reader).manifest.files == sizes


def test_a_file_that_was_cut_off_and_restored_is_opened_again(reader: Collection) -> None:
    path = reader.documents.segments[0].path
    content = path.read_bytes()
    path.write_bytes(content[:10])
    assert not reader.shared(reader.manifest).documents.keys() >= set(reader.manifest.segments)
    path.unlink()
    path.write_bytes(content)
    later = Collection.open(reader.directory, before=reader)
    assert later.document("d0") == Collection.open(reader.directory).document("d0")
    with pytest.raises(DamagedError):
        reader.document("d0")


@pytest.mark.parametrize(
    ("known", "dead_before", "dead", "repeated"),
    [
        (1, [], [], True), (1, [], [0], False), (1, [], [2], False), (1, [0], [0], False), (1, [0], [], True),
        (1, [0], [2], False), (2, [0], [], True), (2, [0], [2], False),
    ],
)  # fmt: skip
def test_an_id_of_two_live_rows_is_found_beside_known_segments(
    tmp_path: Path, known: int, dead_before: list[int], dead: list[int], repeated: bool
) -> None:
    segments = [Segment("000001", 2), Segment("000002", 2)]
    for segment, ids in zip(segments, ("ab", "ac"), strict=True):
        write_segment(tmp_path, segment.name, [Document(id_, "text") for id_ in ids], [])

    def deleted(rows: list[int], segments: Sequence[Segment]) -> Manifest:
        folder = tmp_path / "deleted"
        folder.mkdir(exist_ok=True)
        np.array(rows, dtype="<i8").tofile(folder / "000001.i64")
        return Manifest(segments=tuple(segments), files={"deleted/000001.i64": FileRecord(8 * len(rows), "")})

    first = DocumentStore(tmp_path, segments[:known])
    rows = read_rows(tmp_path, deleted(dead_before, segments[:known]), first)
    both = DocumentStore(tmp_path, segments, dict(zip(segments, first.segments, strict=False)))
    manifest = deleted(dead, segments)
    for before in (None, (first, rows)):
        if repeated:
            with pytest.raises(DamagedError, match="'a' more than once"):
                read_rows(tmp_path, manifest, both, before)
        else:
            found = read_rows(tmp_path, manifest, both, before)
            assert found.find(["a", "b", "c"]).tolist() == [2 if dead == [0] else 0, 1, 3]
