"""A write that cannot finish is never acknowledged: each file of a build in turn is denied its last bytes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from indexes.store import files as storage
from indexes.store import manifest as manifests
from tests.faults.support import Worker, content
from tests.helpers import ROOT, write_corpus

# builds {out: limit in bytes} in a fork each, and prints how each ended
BUILDS = """
import json, os, resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.faults import worker
from indexes.interface import IndexesError

def build(corpus, out, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        worker.build(Path(corpus), Path(out))
        return "acknowledged"
    except IndexesError as error:
        return str(error)

for out, limit in json.loads(sys.argv[2]).items():
    if not os.fork():
        print(json.dumps([out, build(sys.argv[1], out, limit)]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_a_file_without_its_last_bytes_stops_the_build(tmp_path: Path) -> None:
    corpus, whole = write_corpus(tmp_path / "c.jsonl", 300, length=30), tmp_path / "whole"
    with corpus.open("a", encoding="utf-8") as file:
        file.write(f"not json {'x' * 40_000}\n")
    with Worker() as worker:
        worker.make("build", corpus, whole)
        files = manifests.load(whole).files
        assert {Path(name).suffix for name in files} == {
            ".jsonl",
            ".i64",
            ".txt",
            ".f32",
            ".postings",
            ".faiss",
        }
        sizes = [*(record.bytes for record in files.values()), (whole / manifests.NAME).stat().st_size]
        limits = {str(tmp_path / f"i{number}"): size - 100 for number, size in enumerate(sizes)}
        command = [sys.executable, "-c", BUILDS.format(root=str(ROOT)), str(corpus), json.dumps(limits)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        ended = dict(json.loads(line) for line in done.stdout.splitlines())
        assert ended.keys() == limits.keys()
        for out, message in ended.items():
            assert "File too large" in message, message
            assert "ulimit -f" in message
            if Path(out, manifests.NAME).exists():  # from an earlier commit of the same build
                assert not storage.load_checked(Path(out)).build.complete
        last = Path(max(limits, key=lambda out: limits[out]))
        worker.make("build", corpus, last)
        assert content(last) == content(whole)
