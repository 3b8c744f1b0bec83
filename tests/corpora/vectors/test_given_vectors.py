"""Vectors computed elsewhere: indexed, searched with, exported; compared with the real faiss and hnswlib."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import hnswlib
import numpy as np
import pytest

from indexes.collection import Collection
from indexes.errors import BackendUnavailableError, IndexesError
from indexes.interface import Document
from linker import BuildOptions, Engine, build
from linker.base.errors import InputError
from linker.corpora.vectors import export_vectors, read_matrix, read_vectors
from linker.papers.all_pairs import input as all_pairs
from tests.fuzz.vectors import indexes
from tests.helpers import linker

N, DIM = 300, 12
IDS = [f"d{i}" for i in range(N)]
VECTORS = np.random.default_rng(5).normal(size=(N, DIM)).astype(np.float32)
QUERIES = np.random.default_rng(6).normal(size=(4, DIM)).astype(np.float32)
ORDER = np.random.default_rng(7).permutation(N)


def refused(*args: str | Path) -> str:
    """Return the text of the error with which a command ends."""
    return linker(*args, check=1).stderr


def oracle(vectors: Any, queries: Any, k: int) -> list[list[str]]:
    """Rank ids by cosine, the slow and obvious way."""
    cosines = [
        [float(v @ q) / np.linalg.norm(v) / np.linalg.norm(q) for v in vectors] for q in queries.astype(float)
    ]
    return [[IDS[i] for i in np.argsort(-np.array(row))[:k]] for row in cosines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": id_, "text": f"word{i} shared"}) for i, id_ in enumerate(IDS)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    (tmp_path / "ids.txt").write_text("\n".join(IDS[i] for i in ORDER))
    np.save(tmp_path / "v.npy", VECTORS[ORDER])
    np.save(tmp_path / "q.npy", QUERIES)
    return tmp_path


def built(folder: Path, vectors: str = "v.npy", ids: str | None = "ids.txt", name: str = "index") -> Engine:
    options = BuildOptions(vectors_file=folder / vectors, ids_file=folder / ids if ids else None)
    build([folder / "c.jsonl"], folder / name, options)
    return Engine.open(folder / name)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_in_any_order_and_float_find_what_is_nearest(folder: Path, dtype: str, order: Any) -> None:
    matrix = np.asarray(VECTORS[ORDER], dtype=dtype, order=order)
    np.save(folder / "v.npy", matrix)
    answer = built(folder).search(vectors=QUERIES, k=5)
    rounded = matrix.astype(float)[np.argsort(ORDER)]
    assert [list(h.ids) for h in answer.hits] == oracle(rounded, QUERIES, 5)
    assert answer.mode == "dense" and next(iter(answer.hits[0])).document


FACTORIES: dict[str, Callable[[], Any]] = {
    "Flat": lambda: faiss.IndexFlatL2(DIM),
    "HNSW": lambda: faiss.IndexHNSWFlat(DIM, 8),
    "IVF": lambda: faiss.index_factory(DIM, "IVF4,Flat"),
    "PreTransform": lambda: faiss.index_factory(DIM, "OPQ4_12,PQ4x8np"),
    "SQ8": lambda: faiss.index_factory(DIM, "SQ8"),
}


@pytest.mark.parametrize("kind", FACTORIES)
def test_indexes_of_faiss(folder: Path, kind: str) -> None:
    index = FACTORIES[kind]()
    index.train(VECTORS)
    index.add(VECTORS[ORDER])
    faiss.write_index(index, str(folder / "v.faiss"))
    given = read_vectors(folder / "v.faiss", folder / "ids.txt")
    if kind in ("Flat", "HNSW", "IVF"):
        assert (given.of(IDS) == VECTORS).all() and "approximate" not in given.notes[0]
    else:
        cosines = (given.of(IDS) * VECTORS).sum(1) / np.linalg.norm(VECTORS, axis=1)
        assert (
            "approximate" in given.notes[0]
            and np.median(cosines / np.linalg.norm(given.of(IDS), axis=1)) > 0.9
        )
    answer = built(folder, "v.faiss").search(vectors=QUERIES, k=3)
    assert [list(h.ids) for h in answer.hits] == oracle(given.of(IDS), QUERIES, 3)


def test_every_kind_is_read_as_faiss_reads_it_or_refused(tmp_path: Path) -> None:
    """FAISS itself trusts a file: fast-scan codes, or a graph without vectors, would crash the process."""
    refused = set()
    for name, content in indexes().items():
        (tmp_path / "v.faiss").write_bytes(content)
        try:
            read = read_matrix(tmp_path / "v.faiss")
        except InputError as e:
            assert "of a supported kind" in str(e) and "numpy.save" in str(e)
            refused.add(name)
            continue
        index = faiss.deserialize_index(np.frombuffer(content, np.uint8))
        inner = faiss.downcast_index(index.index) if name.startswith("IDMap") else index  # type: ignore[attr-defined]
        if cells := faiss.try_extract_index_ivf(inner):
            cells.make_direct_map()
        np.testing.assert_allclose(read, inner.reconstruct_n(0, inner.ntotal), atol=1e-6)
    assert refused == {"PQ4x4fs", "IVF4,PQ4x4fs", "LSH", "HNSW without vectors"}


def test_a_small_file_declares_no_huge_matrix(tmp_path: Path) -> None:
    """One bit per vector of 4,096 dimensions: decoded, the vectors would be 130,000 times as large as their codes."""
    index = faiss.IndexPQ(4096, 1, 1)
    index.train(np.random.default_rng(0).normal(size=(40, 4096)).astype(np.float32))
    index.add(np.zeros((40_000, 4096), np.float32)[:1])
    content = faiss.serialize_index(index).tobytes()
    at = content.index((1).to_bytes(8, "little") + b"\0", len(content) - 18)  # the length before the code
    many = 40_000
    content = content[:8] + many.to_bytes(8, "little") + content[16:at] + many.to_bytes(8, "little") + bytes(many) + (
        content[at + 9 :]
    )  # fmt: skip
    (tmp_path / "v.faiss").write_bytes(content)
    with pytest.raises(InputError, match="far more vectors than it can hold"):
        read_matrix(tmp_path / "v.faiss")


def npy(head: str, content: bytes = bytes(128), version: bytes = b"\1\0") -> bytes:
    length = len(head).to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + head.encode() + content


SHAPES = ("(-1, 4)", "(-2, -4)", f"({1 << 62}, 4)", f"({10**29}, 4)", "(True, [])", "(2.0, 4)", "(9, 4)")
HEADS = {
    **{f"shape {shape}": npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}") for shape in SHAPES},
    **{
        f"type {kind}": npy(f"{{'descr': {kind}, 'fortran_order': True, 'shape': (2, 4)}}")
        for kind in ("'|O'", "[]", "'V0'", "'<c8'", "('<f4', (99999, 99999))", "[('a', '<f4')]", "7")
    },
    "nested": npy("(" * 4000),
    "cut": npy("{'descr': '<f4'"),
    "no mapping": npy("[" * 90 + "]" * 90),
    "no key": npy("{[]: 1}"),
    "no text": npy("{'descr': '<f4\0'}"),
    "version 3": npy("{}", version=b"\3\0"),
    "version 9": npy("{}", version=b"\x09\x09"),
    "too long": npy("{" + " " * 20_000 + "}"),
    "magic alone": b"\x93NUMPY",
}  # fmt: skip


@pytest.mark.parametrize("case", HEADS)
def test_a_head_of_a_npy_file_that_lies_is_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(HEADS[case])
    for read in (read_matrix, all_pairs.read_vectors):
        with pytest.raises(InputError, match=r"v\.npy"):
            read(path)


def test_a_single_row_in_fortran_order_and_an_array_of_no_dimension(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.asfortranarray(VECTORS[:2]))
    assert (read_matrix(tmp_path / "v.npy") == VECTORS[:2]).all()
    np.save(tmp_path / "v.npy", np.float32(1))
    with pytest.raises(InputError, match=r"shape \(\)"):
        read_matrix(tmp_path / "v.npy")


def test_the_numbers_of_an_id_map_are_ids_unless_a_file_names_others(folder: Path) -> None:
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(DIM))
    numbers = np.arange(N) * 7
    index.add_with_ids(VECTORS[ORDER], numbers)
    faiss.write_index(index, str(folder / "v.faiss"))
    assert list(read_vectors(folder / "v.faiss", None).ids) == [str(n) for n in numbers]
    assert (read_vectors(folder / "v.faiss", folder / "ids.txt").of(IDS) == VECTORS).all()


def test_round_trips(folder: Path) -> None:
    engine = built(folder)
    engine.delete(IDS[:10])
    report = json.loads(
        linker("index", "export", folder / "index", "--npy", folder / "o.npy", "--json").stdout
    )
    assert report["vectors"] == N - 10
    linker("index", "export", folder / "index", "--faiss", folder / "o.faiss", "--hnswlib", folder / "o.bin")
    ids = (folder / "o.npy.ids.txt").read_text().split()
    assert (
        ids
        == (folder / "o.faiss.ids.txt").read_text().split()
        == (folder / "o.bin.ids.txt").read_text().split()
    )
    expected = [list(h.ids) for h in engine.search(vectors=QUERIES, k=5).hits]
    theirs = faiss.read_index(str(folder / "o.faiss"))
    unit = QUERIES / np.linalg.norm(QUERIES, axis=1, keepdims=True)
    assert [[ids[row] for row in rows] for rows in theirs.search(unit, 5)[1]] == expected
    small = hnswlib.Index(space="cosine", dim=DIM)
    small.load_index(str(folder / "o.bin"))
    small.set_ef(N)
    assert [[ids[row] for row in rows] for rows in small.knn_query(QUERIES, 5)[0].tolist()] == expected
    lines = [line for line in (folder / "c.jsonl").read_text().splitlines() if json.loads(line)["id"] in ids]
    (folder / "c.jsonl").write_text("\n".join(lines))
    for vectors in ("o.npy", "o.faiss"):
        again = built(folder, vectors, f"{vectors}.ids.txt", f"again-{vectors}")
        assert [list(h.ids) for h in again.search(vectors=QUERIES, k=5).hits] == expected


def test_what_search_can_do_without_an_encoder(folder: Path) -> None:
    engine = built(folder)
    assert engine.search("word7", k=1).hits[0].ids == ("d7",) and engine.search("word7").mode == "bm25"
    with pytest.raises(BackendUnavailableError, match=r"computed elsewhere.*--query-vectors"):
        engine.search("word7", mode="dense")
    both = engine.search(["word7"], vectors=VECTORS[7], k=2)
    assert both.mode == "hybrid" and both.hits[0].ids[0] == "d7"
    assert engine.search(vectors=VECTORS[:2], k=1, where=None).hits[1].ids == ("d1",)
    with pytest.raises(IndexesError, match="got 1 for 2 texts"):
        engine.search(["a", "b"], vectors=VECTORS[0])
    with pytest.raises(IndexesError, match="by cosine: give the texts"):
        engine.search(vectors=VECTORS[0], mode="hybrid")
    with pytest.raises(IndexesError, match="neither phrases"):
        engine.search("word7", vectors=VECTORS[0], phrases=True)
    with pytest.raises(IndexesError, match="expected \\[n, 12\\]"):
        engine.search(vectors=[[1.0, 2.0]])
    assert "12 dimensions" in repr(engine)


def test_documents_are_added_with_their_vectors(folder: Path) -> None:
    engine = built(folder)
    new = np.eye(DIM, dtype=np.float32)[0]
    with pytest.raises(BackendUnavailableError, match="computed elsewhere"):
        engine.add([Document("new", "text")])
    engine.add([Document("new", "text")], vectors=new[None])
    assert engine.search(vectors=new, k=1).hits[0].ids == ("new",)
    (folder / "more.jsonl").write_text('{"id": "m1", "text": "more"}')
    np.save(folder / "more.npy", -new[None])
    (folder / "more.txt").write_text("m1")
    assert "give those of the new documents" in refused(
        "index", "add", folder / "index", folder / "more.jsonl"
    )
    given = ("--vectors-file", folder / "more.npy", "--ids", folder / "more.txt")
    linker("index", "add", folder / "index", folder / "more.jsonl", *given)
    assert engine.search(vectors=-new, k=1).hits[0].ids == ("m1",)
    np.save(folder / "more.npy", np.ones((1, 3)))
    assert "needs 12" in refused("index", "add", folder / "index", folder / "more.jsonl", *given, "--replace")


def test_ids_that_are_missing_repeated_or_unknown_are_named(folder: Path) -> None:
    ids = (folder / "ids.txt").read_text().split()
    for wrong, reason in (
        (["d3" if i == "d4" else i for i in ids], "repeats 1 id: 'd3'"),
        (["x9" if i == "d4" else i for i in ids], "no vector for 1 id: 'd4'"),
        (ids[:-1], "holds 299 ids, but .* has 300 vectors"),
    ):
        (folder / "wrong.txt").write_text("\n".join(wrong))
        with pytest.raises(InputError, match=reason):
            built(folder, ids="wrong.txt")
    lines = (folder / "c.jsonl").read_text().splitlines()
    (folder / "c.jsonl").write_text("\n".join([*lines[:-2], "{broken"]))
    with pytest.raises(
        InputError, match=r"vectors for 2 ids: 'd29[89]', 'd29[89]', which .* \(1 of its records"
    ):
        built(folder)
    with pytest.raises(InputError, match="holds no ids"):
        built(folder, ids=None)
    assert not (folder / "index").exists()


def test_rows_without_a_direction_are_named(folder: Path) -> None:
    broken = VECTORS[ORDER].astype(np.float64)
    broken[3, 1], broken[5], broken[7, 0] = np.nan, 0, 1e300
    np.save(folder / "v.npy", broken)
    names = [IDS[ORDER[row]] for row in (3, 5, 7)]
    reason = rf"row 3 \(id '{names[0]}'\) is NaN or infinite, row 5 \(id '{names[1]}'\) is zero, row 7"
    with pytest.raises(InputError, match=reason):
        built(folder)


def test_files_that_are_no_vectors(folder: Path) -> None:
    for content, reason in (
        (np.zeros(3), r"shape \(3,\)"), (np.zeros((2, 0)), r"shape \(2, 0\)"), (np.ones((2, 2), int), "int64"),
        (np.array([[object()]]), "Python objects"),
    ):  # fmt: skip
        np.save(folder / "v.npy", content)
        with pytest.raises(InputError, match=reason):
            read_vectors(folder / "v.npy", folder / "ids.txt")
    good = folder / "q.npy"
    (folder / "cut.npy").write_bytes(good.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"cannot read .*cut\.npy"):
        read_vectors(folder / "cut.npy", folder / "ids.txt")
    (folder / "text").write_text("no vectors")
    with pytest.raises(InputError, match=r"neither a \.npy file nor an index of FAISS"):
        read_matrix(folder / "text")
    with pytest.raises(InputError, match="No such file"):
        read_matrix(folder / "absent.npy")
    assert read_matrix(good).shape == (4, DIM)


def test_search_writes_a_run_for_query_vectors(folder: Path) -> None:
    built(folder)
    run = linker(
        "search", folder / "index", "--query-vectors", folder / "q.npy", "-k", "3"
    ).stdout.splitlines()
    assert [line.split()[2] for line in run[:3]] == oracle(VECTORS, QUERIES, 3)[0] and run[3].startswith(
        "1 Q0"
    )
    (folder / "qids.txt").write_text("a\nb\nc\nd")
    named = linker(
        "search", folder / "index", "--query-vectors", folder / "q.npy", "--query-ids", folder / "qids.txt",
        "--format", "ranx",
    )  # fmt: skip
    assert list(json.loads(named.stdout)) == ["a", "b", "c", "d"]
    (folder / "qids.txt").write_text("a\nb")
    wrong = ("--query-vectors", folder / "q.npy", "--query-ids", folder / "qids.txt")
    assert "expected 4 different ids, one per query vector, got 2" in refused(
        "search", folder / "index", *wrong
    )
    (folder / "q.jsonl").write_text('{"id": "t", "text": "word7"}')
    np.save(folder / "one.npy", VECTORS[7])
    both = ("--queries", folder / "q.jsonl", "--query-vectors", folder / "one.npy")
    assert linker("search", folder / "index", *both).stdout.split()[2] == "d7"
    linker("search", folder / "index", "--query-ids", folder / "qids.txt", "x", check=2)
    assert "computed elsewhere" in linker("index", "info", folder / "index").stdout


def test_an_index_without_vectors_has_none_to_export(folder: Path) -> None:
    build([folder / "c.jsonl"], folder / "plain", BuildOptions())
    with pytest.raises(IndexesError, match="no vectors to export"):
        export_vectors(Collection.open(folder / "plain"), folder / "o.npy", "npy")
    linker("index", "export", folder / "plain", check=2)


@pytest.mark.parametrize(("row", "number"), [(0, 1), (0, -1), (3, 40)])
def test_cells_hold_each_row_once(row: int, number: int, tmp_path: Path) -> None:
    content = bytearray(indexes()["IVF4,Flat"])
    at = content.rindex(row.to_bytes(8, "little"))
    content[at : at + 8] = number.to_bytes(8, "little", signed=True)
    (tmp_path / "v.faiss").write_bytes(content)
    with pytest.raises(InputError, match=r"twice|not the numbers"):
        read_matrix(tmp_path / "v.faiss")
