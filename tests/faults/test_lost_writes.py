"""A write that cannot be finished is never acknowledged: each file of a build in turn is not allowed its last bytes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from indexes import manifest as manifests
from indexes import storage
from tests.faults.support import Worker, content
from tests.helpers import ROOT, write_corpus

BUILD = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.faults import worker
from indexes.interface import IndexesError
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    worker.build(Path(sys.argv[1]), Path(sys.argv[2]))
except IndexesError as error:
    sys.exit(str(error))
"""


@pytest.mark.slow
def test_a_file_without_its_last_bytes_stops_the_build(tmp_path: Path) -> None:
    corpus, whole = write_corpus(tmp_path / "c.jsonl", 300, length=30), tmp_path / "whole"
    with corpus.open("a", encoding="utf-8") as file:
        file.write(f"not json {'x' * 40_000}\n")
    with Worker() as worker:
        worker.make("build", corpus, whole)
        expected = content(whole)
        kinds = {Path(name).suffix for name in manifests.load(whole).files}
        assert kinds == {".jsonl", ".i64", ".txt", ".f32", ".postings", ".faiss"}
        sizes = {name: record.bytes for name, record in manifests.load(whole).files.items()}
        sizes |= {name: (whole / name).stat().st_size for name in (manifests.NAME,)}
        tried = 0
        for name, size in sizes.items():
            out = tmp_path / "i"
            command = [sys.executable, "-c", BUILD.format(root=str(ROOT)), str(corpus), str(out), str(size - 100)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 1, name
            assert "File too large" in done.stderr, (name, done.stderr)
            assert "ulimit -f" in done.stderr
            tried += 1
            if (out / manifests.NAME).exists():  # an earlier commit of the same build
                assert storage.load_checked(out).build.complete is False
            worker.make("build", corpus, out)  # goes on with it, and sweeps
            assert content(out) == expected
            worker.make("compact", out)
            shutil.rmtree(out)
    assert tried == len(sizes) >= 8
