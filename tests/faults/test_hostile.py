"""An index from elsewhere is data: whatever it holds, it is refused or answers, and points nowhere else."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.interface import DamagedError, Document, IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import records
from indexes.store.records import Manifest
from indexes.stored_vectors import check_unit
from indexes.writer import Writer
from tests.fuzz.store import GOLDEN, replace
from tests.golden.make_index import ENCODER
from tests.helpers import linker


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A modifiable copy of the golden index."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "i"))


@pytest.mark.parametrize("name", ["deleted/000003.i64", "segments/000001/ids.txt", "manifest.json"])
@pytest.mark.parametrize("what", ["link", "device", "pipe", "folder", "socket"])
def test_only_regular_files_are_read(
    name: str, what: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = index / name
    shutil.move(path, tmp_path / "moved")
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            monkeypatch.chdir(path.parent)  # socket paths must be short
            made.bind(path.name)
    else:
        path.symlink_to("/dev/zero" if what == "device" else tmp_path / "moved")
    with pytest.raises(DamagedError, match=path.name):
        Collection.open(index)
    done = linker("index", "verify", index, check=1)
    assert "regular file" in done.stdout + done.stderr
    linker("index", "info", index, check=1 if name == "manifest.json" else 0)


@pytest.mark.parametrize("folder", ["segments", "segments/000001", "text/000002", "graph"])
def test_a_linked_folder_is_refused(folder: str, index: Path, tmp_path: Path) -> None:
    shutil.move(index / folder, tmp_path / "moved")
    (index / folder).symlink_to(tmp_path / "moved")
    with pytest.raises(DamagedError, match=folder):
        Collection.open(index)


def test_the_directory_itself_may_be_a_link(index: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(index)
    assert Collection.open(tmp_path / "link").document("d1").id == "d1"


def test_a_manifest_without_end_is_not_read(index: Path) -> None:
    with (index / manifests.NAME).open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedError, match="longer than"):
        manifests.load(index)


def test_a_manifest_too_long_to_be_read_is_not_written() -> None:
    search = {"mode": "x" * manifests.MOST_BYTES}
    with pytest.raises(IndexesError, match="too long"):
        manifests.dump(Manifest(search=search))


def test_sizes_are_compared_before_bytes_are_read(index: Path) -> None:
    with (index / "deleted/000003.i64").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedError, match=f"{1 << 40} bytes instead of 16"):
        storage.load_checked(index)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("segments/000001/ids.txt", b"d1\n", b"d2\n", "more than once"),
        ("segments/000001/ids.txt", b"d1\n", b"\x1b1\n", "30 valid ids"),
        ("segments/000001/documents.jsonl", b'"id":"d1"', b'"id":"d9"', "document 'd1'"),
        ("segments/000001/documents.jsonl", b'"title":', b'"tatle":', "document 'd0'"),
        ("deleted/000003.i64", b"\x04", b"\x28", "does not list existing rows"),
    ],
)
def test_verify_names_contradictions(name: str, old: bytes, new: bytes, said: str, index: Path) -> None:
    data = (index / name).read_bytes()
    assert old in data
    replace(index, name, data.replace(old, new, 1))
    assert storage.damage(index, manifests.load(index)) == []
    done = linker("index", "verify", index, check=1)
    assert said in done.stdout


def test_a_removed_row_s_id_may_come_again(index: Path) -> None:
    for row, refused in ((4, False), (5, True)):  # row 4 is removed
        for name in ("ids.txt", "documents.jsonl"):
            data = (GOLDEN / "segments/000002" / name).read_bytes()
            old, new = ((b"d30", b"d%d " % row), (b'"id":"d30"', b'"id":"d%d" ' % row))[name != "ids.txt"]
            replace(
                index,
                f"segments/000002/{name}",
                data.replace(old, new.rstrip() if name == "ids.txt" else new),
            )
        if refused:
            with pytest.raises(DamagedError, match="more than once"):
                Collection.open(index)
        else:
            assert Collection.open(index).document(f"d{row}").id == "d4"


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e30, 0.5])
def test_vectors_are_of_length_one_or_zero(value: float, tmp_path: Path) -> None:
    block = np.eye(9, 4, dtype=np.float32)  # five are empty
    check_unit(tmp_path, [block])
    block[7, 2] = value
    with pytest.raises(DamagedError, match="row 7"):
        check_unit(tmp_path, [block])


def test_every_kind_of_vectors_and_language_that_is_written_is_read(tmp_path: Path) -> None:
    from indexes.store.manifest_checks import VECTORS
    from indexes.text.parameters import LANGUAGES, AnalysisSettings

    record = records.EncoderRecord("golden", ENCODER.fingerprint, ENCODER.dim)
    for number, kind in enumerate(("none", "flat", "auto", "hnsw", "pq", "ivfpq")):
        assert kind in VECTORS
        made = Manifest(
            vectors=kind,
            analysis=AnalysisSettings(LANGUAGES[number]),
            encoder=None if kind == "none" else record,
        )
        with Writer.create(tmp_path / kind, made) as writer:
            documents = [Document("a", "text")]
            writer.add(documents, None if kind == "none" else ENCODER.encode(["text"]))
            writer.commit()
        assert Collection.open(tmp_path / kind).document("a").text == "text"


def test_a_mapped_file_that_is_cut_off_is_damage_and_no_crash(tmp_path: Path) -> None:
    """In a separate process: touching a missing page would kill it."""
    program = """
import os, sys
from pathlib import Path
from indexes.collection import Collection
from indexes.interface import DamagedError
from tests.faults.test_hostile import make_large
from tests.golden.make_index import ENCODER
index = Path(sys.argv[1])
make_large(index)
collection = Collection.open(index)
hybrid, texts = collection.hybrid, ["word1 word5"]
uses = {
    "documents.jsonl": lambda: collection.documents[2999],
    "vectors.f32": lambda: hybrid.search(texts, 5, embed=ENCODER.encode, mode="dense"),
    "postings": lambda: hybrid.search(texts, 5, mode="bm25"),
}
for name, use in uses.items():
    use()
    (path,) = [p for p in index.rglob("*") if p.name.endswith(name)]
    os.truncate(path, 100)
    try:
        use()
    except DamagedError as e:
        print(e)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "i")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("was cut off after it was opened") == 3


def make_large(out: Path) -> None:
    """Write an index of 3,000 documents in one segment."""
    record = records.EncoderRecord("golden", ENCODER.fingerprint, ENCODER.dim)
    texts = [f"word{n} word{n % 7} {'filler ' * 9}" for n in range(3000)]
    with Writer.create(out, Manifest(vectors="flat", encoder=record)) as writer:
        writer.add([Document(f"d{n}", text) for n, text in enumerate(texts)], ENCODER.encode(texts))
        writer.commit()


def test_a_document_changed_under_an_open_index_is_damage(index: Path) -> None:
    collection = Collection.open(index)
    path = index / "segments/000001/documents.jsonl"
    with path.open("r+b") as file:
        file.write(b'{"id":"d1"')
    with pytest.raises(DamagedError, match="document 'd0'"):
        collection.document("d0")
    values = json.loads((index / manifests.NAME).read_bytes())
    assert values["segments"][0]["rows"] == 30
