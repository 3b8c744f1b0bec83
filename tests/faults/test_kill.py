"""SIGKILL at random moments: nothing committed is lost, and a resumed build ends as an uninterrupted one."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes import manifest as manifests
from indexes import storage
from indexes.collection import Collection
from tests.helpers import HashEncoder, sentence, write_corpus

WORKER = Path(__file__).with_name("build_worker.py")
KILLS = 20


def start(corpus: Path, out: Path, vectors: str = "flat") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(WORKER), str(corpus), str(out), vectors, "--resume"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "started\n"
    return process


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def content(out: Path) -> dict[str, Any]:
    """Everything a user can get out of an index."""
    manifest = storage.load_checked(out)
    collection = Collection.open(out)
    rng = random.Random(1)
    queries = [sentence(rng, 4) for _ in range(50)]
    searched = {
        mode: [
            (hits.ids, hits.scores.tolist())
            for hits in collection.hybrid.search(queries, 10, embed=HashEncoder().encode, mode=mode).hits
        ]
        for mode in ("bm25", "dense", "hybrid")
    }
    quarantine = [
        line
        for name in sorted(manifest.files)
        if name.startswith("quarantine/")
        for line in (out / name).read_text(encoding="utf-8").splitlines()
    ]
    return {
        "documents": [collection.documents[row] for row in range(len(collection.rows.ids))],
        "vectors": b"".join(block.tobytes() for block in collection.documents.vectors(16)),
        "searched": searched,
        "quarantine": quarantine,
        "manifest": (manifest.documents, manifest.quarantined, manifest.build),
    }


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = write_corpus(tmp_path / "c.jsonl", 1500)
    lines = path.read_text(encoding="utf-8").splitlines()
    for place in range(0, len(lines), 100):
        lines[place] = lines[place][:-20]  # no JSON
        lines[place + 1] = lines[place + 2]  # an id twice
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_twenty_kills_then_resume_equals_an_uninterrupted_build(tmp_path: Path, corpus: Path) -> None:
    begin = time.monotonic()
    finish(start(corpus, tmp_path / "whole"))
    duration = time.monotonic() - begin
    expected = content(tmp_path / "whole")
    assert expected["manifest"][:2] == (1500 - 30, 30)

    rng, out, kills, ended, seen = random.Random(7), tmp_path / "killed", 0, 0, set()
    while kills < KILLS:
        process = start(corpus, out)
        time.sleep(rng.uniform(0, duration / 3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:  # it was faster than the kill
            assert content(out) == expected
            shutil.rmtree(out)
            ended += 1
            assert ended < 50, "builds end before they can be killed"
            continue
        kills += 1
        if (out / manifests.NAME).exists():
            manifest = storage.load_checked(out)
            collection = Collection.open(out)
            assert len(collection.rows) == manifest.documents
            assert collection.rows.ids == [d.id for d in expected["documents"][: manifest.rows]]
            seen.add(manifest.build.position)
    assert len(seen) > 3, f"the kills hit too few different moments: {seen}"
    finish(start(corpus, out))
    assert content(out) == expected
    assert storage.damage(out, manifests.load(out)) == []
    listed = {*manifests.load(out).files, manifests.NAME, storage.LOCK}
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == listed


def test_resuming_a_finished_build_changes_nothing(tmp_path: Path, corpus: Path) -> None:
    from linker import building

    out = tmp_path / "out"
    first = building.build([corpus], out, building.BuildOptions())
    before = (out / manifests.NAME).read_bytes()
    again = building.build([corpus], out, building.BuildOptions(), resume=True)
    assert (again.documents, again.added, again.quarantined) == (first.documents, 0, 0)
    assert (out / manifests.NAME).read_bytes() == before


def test_resume_refuses_another_corpus_and_other_options(tmp_path: Path, corpus: Path) -> None:
    from indexes.interface import IndexesError
    from linker import building

    out = tmp_path / "out"
    process = start(corpus, out)
    while not (out / manifests.NAME).exists():
        time.sleep(0.01)
    process.kill()
    process.communicate()
    with pytest.raises(IndexesError, match="already holds an index"):
        building.build([corpus], out, building.BuildOptions())
    with pytest.raises(IndexesError, match="another --encoder"):
        building.build([corpus], out, building.BuildOptions(), resume=True)
    corpus.write_text('{"id": "a", "text": "Another one."}\n', encoding="utf-8")
    with pytest.raises(IndexesError, match="not the same now"):
        building.build([corpus], out, building.BuildOptions(), resume=True)


def test_vectors_are_those_of_the_encoder(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 100)
    finish(start(corpus, tmp_path / "i"))
    collection = Collection.open(tmp_path / "i")
    texts = [collection.documents[row].full_text for row in range(100)]
    assert np.allclose(np.vstack(collection.documents.vectors(16)), HashEncoder().encode(texts), atol=1e-6)
