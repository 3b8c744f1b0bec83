"""Indexes as the first version of each format wrote them, and what the commands printed before code was moved."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.interface import Document
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import records
from indexes.writer import Writer
from tests.golden.make_commands import FOLDER, outputs
from tests.golden.make_index import ENCODER, HERE, answers, documents
from tests.helpers import linker

INDEXES = sorted(path for path in HERE.glob("index-v*") if path.is_dir())


def test_every_format_has_its_index() -> None:
    assert [path.name for path in INDEXES] == [f"index-v{n}" for n in range(3, records.FORMAT + 1)]


@pytest.mark.parametrize("golden", INDEXES, ids=lambda path: path.name)
def test_an_earlier_index_is_read_searched_and_verified(golden: Path) -> None:
    before = {p: p.read_bytes() for p in golden.rglob("*") if p.is_file()}
    assert storage.damage(golden, manifests.load(golden)) == []
    assert linker("index", "verify", golden).returncode == 0
    collection = Collection.open(golden)
    assert [collection.documents[row] for row in range(40)] == documents()
    assert collection.rows.dead.tolist() == [4, 31]
    (vectors,) = collection.documents.vectors(ENCODER.dim)
    assert np.allclose(vectors, ENCODER.encode([d.full_text for d in documents()]), atol=1e-6)
    assert collection.manifest.search["fusion"] == {"method": "rrf", "weights": [0.25, 0.75], "k": 60}
    check_answers(golden, golden)
    assert {p: p.read_bytes() for p in golden.rglob("*") if p.is_file()} == before


def check_answers(index: Path, golden: Path) -> None:
    expected = json.loads(golden.with_name(f"{golden.name}.json").read_text(encoding="utf-8"))["answers"]
    found = answers(index)
    assert found.keys() == expected.keys()
    for name, hits in expected.items():
        for (ids, scores), (found_ids, found_scores) in zip(hits, found[name], strict=True):
            assert found_ids == ids, name
            assert found_scores == pytest.approx(scores, abs=2e-6), name


@pytest.mark.parametrize("golden", INDEXES, ids=lambda path: path.name)
def test_an_earlier_index_is_changed(golden: Path, tmp_path: Path) -> None:
    out = tmp_path / "i"
    shutil.copytree(golden, out)
    new = Document("new", "a document of today")
    with Writer.open(out) as writer:
        writer.add([new], ENCODER.encode([new.full_text]))
        writer.commit()
    with Writer.open(out) as writer:
        writer.remove(["new"])
        writer.commit()
        assert writer.compact().documents == 38
    left = [d for d in documents() if d.id not in {"d4", "d31"}]
    collection = Collection.open(out)
    assert [collection.documents[row] for row in range(38)] == left
    assert storage.damage(out, manifests.load(out)) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outputs(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("golden", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_command_prints_what_it_did(golden: Path, written: dict[str, str]) -> None:
    expected, found = golden.read_text(encoding="utf-8"), written[golden.name]
    if golden.suffix in {".run", ".links"}:
        assert [_with_score(line) for line in found.splitlines()] == [
            _with_score(line) for line in expected.splitlines()
        ]
    else:
        assert found == expected


def _with_score(line: str) -> list[object]:
    *names, score, run = line.split()
    return [*names, pytest.approx(float(score), rel=1e-5), run]


def test_every_output_is_compared(written: dict[str, str]) -> None:
    assert sorted(written) == sorted(path.name for path in FOLDER.iterdir())
