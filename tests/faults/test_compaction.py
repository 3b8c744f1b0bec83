"""Compaction: the result answers like an index that never held the removed documents."""

import functools
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes import stored_vectors
from indexes.collection import Collection
from indexes.interface import Document, Filter, IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store.records import EncoderRecord, Manifest
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from tests.faults.support import assert_tidy, content
from tests.helpers import HashEncoder, linker, sentence, write_corpus

ENCODER = HashEncoder()
EMPTY = Manifest(vectors="flat", encoder=EncoderRecord("hash", ENCODER.fingerprint, ENCODER.dim))


def document(number: int) -> Document:
    rng = random.Random(number)
    return Document(f"d{number}", sentence(rng, 6), sentence(rng, 2), {"group": number % 3})


def add(writer: Writer, documents: Sequence[Document]) -> None:
    writer.add(documents, ENCODER.encode([d.full_text for d in documents]))
    writer.commit()


def fresh(out: Path, documents: Sequence[Document], manifest: Manifest = EMPTY) -> Path:
    with Writer.create(out, manifest) as writer:
        if documents:
            add(writer, documents)
    return out


def live(out: Path) -> list[Document]:
    opened = Collection.open(out)
    return [opened.document(id_) for id_ in opened.rows.ids if id_ in opened.rows]


def filtered(out: Path, mode: str) -> list[tuple[tuple[str, ...], list[float]]]:
    where, texts = Filter.parse(["group=1"]), [sentence(random.Random(5), 3)]
    hybrid = Collection.open(out).hybrid
    answer = hybrid.search(texts, 50, embed=ENCODER.encode, mode=mode, where=where)  # type: ignore[arg-type] # a name
    return [(h.ids, h.scores.tolist()) for h in answer.hits]


changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 40)), st.tuples(st.just("delete"), st.integers(1, 30)),
        st.tuples(st.just("again"), st.integers(1, 5)), st.tuples(st.just("compact"), st.just(0)),
    ),
    min_size=2,
    max_size=8,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes, st.randoms(use_true_random=False))
def test_random_changes_then_compaction_equal_a_fresh_build(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], rng: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("random")
    out = fresh(folder / "i", [])
    present: dict[str, Document] = {}
    number = 0
    for change, count in [*steps, ("compact", 0)]:
        with Writer.open(out) as writer:
            if change == "add":
                new = [document(n) for n in range(number, number + count)]
                number += count
                add(writer, new)
                present.update((d.id, d) for d in new)
            elif change == "compact":
                writer.compact()
            elif present:
                gone = rng.sample(sorted(present), min(count, len(present)))
                writer.remove(gone)
                back = [present.pop(id_) for id_ in gone]
                if change == "again":  # they return behind all others
                    add(writer, back)
                    present.update((d.id, d) for d in back)
                else:
                    writer.commit()
    assert live(out) == list(present.values())
    expected = fresh(folder / "fresh", list(present.values()))
    assert Collection.open(out).rows.ids == list(present)
    assert {**content(out), "manifest": 0} == {**content(expected), "manifest": 0}
    for mode in ("bm25", "dense", "hybrid"):
        assert filtered(out, mode) == filtered(expected, mode)
    assert_tidy(out)


def test_dense_answers_do_not_change_and_an_open_reader_keeps_its_generation(tmp_path: Path) -> None:
    out = fresh(tmp_path / "i", [document(n) for n in range(100)])
    with Writer.open(out) as writer:
        writer.remove([f"d{n}" for n in range(0, 100, 3)])
        writer.commit(search={"mode": "dense", "fusion": None})
    reader = Collection.open(out)
    before = {mode: answers(reader, mode) for mode in ("bm25", "dense", "hybrid")}
    with Writer.open(out) as writer:
        manifest = writer.compact()
        assert manifest.rows == manifest.documents == 66
        assert manifest.search == {"mode": "dense", "fusion": None}
        assert answers(Collection.open(out), "dense") == before["dense"]
        add(writer, [document(1000)])  # a writer continues after compacting
        writer.remove(["d1"])
        writer.commit()
    after = Collection.open(out)
    assert "d1" not in after.rows
    assert after.document("d1000") == document(1000)
    assert reader.document("d1") == document(1)
    assert {mode: answers(reader, mode) for mode in before} == before


def answers(opened: Collection, mode: str) -> list[tuple[tuple[str, ...], list[float]]]:
    texts = [sentence(random.Random(n), 4) for n in range(5)]
    answer = opened.hybrid.search(texts, 60, embed=ENCODER.encode, mode=mode)  # type: ignore[arg-type] # a name
    return [(h.ids, h.scores.tolist()) for h in answer.hits]


def test_nothing_to_compact_commits_nothing(tmp_path: Path) -> None:
    out = fresh(tmp_path / "i", [document(1)])
    with Writer.open(out) as writer:
        assert writer.compact() is writer.manifest
        writer.remove(["d1"])
        with pytest.raises(IndexesError, match="uncommitted changes"):
            writer.compact()
        writer.commit()
        manifest = writer.compact()
        assert (manifest.documents, manifest.rows, manifest.files) == (0, 0, {})
        add(writer, [document(2)])
    assert live(out) == [document(2)]
    assert_tidy(out)


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
def test_structures_are_built_again(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_vectors, "FaissIndex", functools.partial(FaissIndex, exact_below=100))
    rng = np.random.default_rng(4)
    count, manifest = 1200, Manifest(vectors=kind, encoder=EMPTY.encoder)
    documents = [Document(f"d{n}", "word") for n in range(count)]
    vectors = rng.standard_normal((count, ENCODER.dim)).astype(np.float32)
    kept = [n for n in range(count) if n % 100]
    with Writer.create(tmp_path / "i", manifest) as writer:
        writer.add(documents, vectors)
        writer.commit()
        writer.remove([f"d{n}" for n in range(0, count, 100)])
        writer.commit()
        writer.compact()
    with Writer.create(tmp_path / "fresh", manifest) as writer:
        writer.add([documents[n] for n in kept], vectors[kept])
        writer.commit()
    answers = []
    for name in ("i", "fresh"):
        opened = Collection.open(tmp_path / name)
        assert opened.manifest.only_file("graph")
        assert opened.hybrid.vectors is not None
        rows, scores = opened.hybrid.vectors.search_rows(vectors[:200], 1)
        answers.append((rows[:, 0], scores[:, 0]))
    (rows, scores), (expected, _) = answers
    own = np.array([kept.index(n) if n % 100 else -1 for n in range(200)])
    found = own >= 0
    assert (rows[found] == own[found]).mean() > 0.95  # each document finds itself, under its new number
    assert (rows == expected).mean() > 0.95
    assert np.allclose(scores[found & (rows == own)], 1, atol=1e-5)


def test_the_command(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 300)
    out = tmp_path / "i"
    linker("index", "build", corpus, "--out", out)
    assert "nothing to compact" in linker("index", "compact", out).stdout
    linker("index", "delete", out, *(f"d{n}" for n in range(100)))
    done = linker("index", "compact", out)
    assert "200 documents, 100 deleted ones dropped" in done.stdout
    assert '"deleted":0' in linker("index", "info", out, "--json").stdout
    assert linker("index", "verify", out).returncode == 0
    linker("index", "delete", out, "d150")
    assert '"dropped":1' in linker("index", "compact", out, "--json").stdout


@pytest.mark.parametrize("count", [300, 280])  # the last commit adds documents, or nothing
def test_a_build_and_a_compaction_leave_one_segment(count: int, tmp_path: Path) -> None:
    corpus, out = write_corpus(tmp_path / "c.jsonl", count), tmp_path / "i"
    linker("index", "build", corpus, "--out", out, "--batch-size", "20", "--commit-every", "40")
    manifest = manifests.load(out)
    assert manifest.generation > 5
    assert [s.rows for s in manifest.segments] == [count]
    for prefix in ("x", "y"):
        linker(
            "index", "add", out, write_corpus(tmp_path / "m.jsonl", 10 + ord(prefix) % 2 * 10, prefix=prefix)
        )
    found, text = content_of_bm25(out), storage.TEXT
    before = manifests.load(out)
    assert len(before.segments) > 1
    assert '"dropped":0' in linker("index", "compact", out, "--json").stdout
    after = manifests.load(out)
    assert [s.rows for s in after.segments] == [before.rows]
    assert {f for f in after.files if f.startswith(text)} == {f for f in before.files if f.startswith(text)}
    assert content_of_bm25(out) == found
    assert_tidy(out)


def content_of_bm25(out: Path) -> object:
    opened = Collection.open(out)
    hits = opened.hybrid.search([sentence(random.Random(2), 4)], 50, mode="bm25").hits[0]
    documents = [opened.documents[row] for row in range(len(opened.rows.ids))]
    return documents, hits.ids, hits.scores.tolist()
