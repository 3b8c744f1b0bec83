"""Shared by the fault tests: a process that changes an index and dies on request, and an index's full content."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from indexes.collection import Collection
from indexes.store import files as storage
from indexes.store import manifest as manifests
from tests.helpers import HashEncoder, sentence

WORKER = Path(__file__).with_name("worker.py")
KILLED = -9


class Worker:
    """A process that forks one child per request, so that a death costs milliseconds instead of a Python start."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def ask(self, change: str, *paths: Path, fault: str = "", after: float | None = None) -> dict[str, Any]:
        """Make a change in a child that dies at the fault point, or `after` seconds; return how it ended."""
        assert self._process.stdin
        assert self._process.stdout
        request = {"change": change, "paths": [str(p) for p in paths], "fault": fault, "after": after}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["status"] in (0, KILLED), answer
        return answer

    def make(self, change: str, *paths: Path) -> dict[str, int]:
        """Make a change that must succeed; return how often it passed each fault point."""
        answer = self.ask(change, *paths)
        assert answer["status"] == 0, answer
        passed: dict[str, int] = answer["passed"]
        return passed


def content(out: Path, queries: int = 5, dim: int = 16) -> dict[str, Any]:
    """Everything a user can read from an index with vectors from HashEncoder(dim)."""
    manifest = storage.load_checked(out)
    collection = Collection.open(out)
    rng = random.Random(1)
    texts = [sentence(rng, 4) for _ in range(queries)]
    searched = {
        mode: [
            (hits.ids, hits.scores.tolist())
            for hits in collection.hybrid.search(texts, 10, embed=HashEncoder(dim).encode, mode=mode).hits
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
        "removed": collection.rows.dead.tolist(),
        "vectors": b"".join(block.tobytes() for block in collection.documents.vectors(dim)),
        "searched": searched,
        "quarantine": quarantine,
        "manifest": (manifest.documents, manifest.quarantined, manifest.build, manifest.search),
    }


def assert_tidy(out: Path) -> None:
    """Nothing is damaged, and there are no files that the manifest does not list."""
    manifest = manifests.load(out)
    assert storage.damage(out, manifest) == []
    found = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert found == {*manifest.files, manifests.NAME, storage.LOCK}
