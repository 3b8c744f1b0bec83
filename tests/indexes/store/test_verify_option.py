"""Opening without checking checksums: damage still noticed, and damage left to `linker index verify`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, Document
from linker.engine import Engine, building

VECTORS = np.eye(4, dtype=np.float32)[[0, 1, 2]]


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("a.index", "b.index")]
    for number, out in enumerate(found):
        building.create(out)
        with Engine(out) as engine:
            engine.add([Document(f"{number}-{n}", f"text {n}") for n in range(3)])
    return found


@pytest.mark.parametrize("count", [1, 2])
def test_a_flipped_text_is_found_by_a_checksum_only(shards: list[Path], count: int) -> None:
    given = shards if count == 2 else shards[0]
    path = next(shards[0].glob("segments/*/documents.jsonl"))
    path.write_bytes(path.read_bytes().replace(b"text 1", b"TEXT 1"))
    with pytest.raises(DamagedError, match="checksum"):
        Engine(given, on_failure="fail")
    with Engine.open(given, on_failure="fail", verify=False) as engine:
        assert engine.document("0-1").text == "TEXT 1"
        assert len(engine.search("text", 10).hits[0]) == 3 * count


@pytest.mark.parametrize("name", ["documents.jsonl", "ids.txt", "offsets.i64"])
def test_a_file_of_another_size_is_refused_in_any_case(shards: list[Path], name: str) -> None:
    path = next(shards[0].glob(f"segments/*/{name}"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError, match=name):
        Engine(shards[0], verify=False)


def test_ids_that_repeat_are_refused_in_any_case(shards: list[Path]) -> None:
    path = next(shards[0].glob("segments/*/ids.txt"))
    path.write_bytes(path.read_bytes().replace(b"0-1", b"0-2"))
    with pytest.raises(DamagedError, match="more than once"):
        Engine(shards[0], verify=False)


def test_vectors_are_not_read(tmp_path: Path) -> None:
    corpus, matrix, names = (tmp_path / name for name in ("c.jsonl", "v.npy", "v.ids"))
    corpus.write_text("".join(f'{{"_id": "{n}", "text": "text {n}"}}\n' for n in range(3)))
    np.save(matrix, VECTORS)
    names.write_text("0\n1\n2\n")
    out = tmp_path / "x.index"
    building.build([corpus], out, building.BuildOptions(vectors="flat", vectors_file=matrix, ids_file=names))
    path = next(out.glob("segments/*/vectors.f32"))
    path.write_bytes((3 * VECTORS).astype("<f4").tobytes())
    with pytest.raises(DamagedError):
        Engine(out)
    with Engine(out, verify=False) as engine:
        assert engine.search(vectors=VECTORS[1], k=1).hits[0].ids == ("1",)
