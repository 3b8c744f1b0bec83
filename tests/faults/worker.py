"""Makes one change to an index in a fork per request, and dies where the request says; see support.Worker."""

import collections
import dataclasses
import functools
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from indexes import carrying, merging, stored_vectors
from indexes.collection import Collection
from indexes.disk import faults
from indexes.interface import Document
from indexes.text.parameters import Bm25Parameters, Field
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.faiss_index import FaissIndex
from indexes.writer import Writer
from linker.engine import Engine, building
from tests.helpers import HashEncoder

# A graph is built from 50 rows on, so that small indexes have one. `setattr`, since mypy rejects such assignments.
setattr(building, "load_encoder", lambda name, **_: HashEncoder())  # noqa: B010
setattr(stored_vectors, "FaissIndex", functools.partial(FaissIndex, exact_below=50))  # noqa: B010
# Commits merge almost nothing, so that there is something to merge in the background.
setattr(carrying, "ROWS", carrying.MergeLimits(16, 1 << 16, 1 << 40))  # noqa: B010
setattr(carrying, "POSTINGS", carrying.MergeLimits(16, 1 << 26, 1 << 26))  # noqa: B010
setattr(carrying, "TOKENS", carrying.MergeLimits(16, 1 << 26, 1 << 26))  # noqa: B010
OPTIONS = building.BuildOptions(encoder="hash", vectors="hnsw", batch_size=32, commit_every=64)


def build(corpus: Path, out: Path) -> None:
    building.build([corpus], out, OPTIONS, resume=True)


def build_fields(corpus: Path, out: Path) -> None:
    fields = Bm25Parameters(fields=(Field("title", 2.0), Field("text"), Field("lang")))
    options = dataclasses.replace(OPTIONS, bm25=fields, positions=True)
    building.build([corpus], out, options, resume=True)


def store_ranker(folder: Path, out: Path) -> None:
    with Writer.open(out) as writer:
        writer.store_ranker("0" * 16, folder)


def add(corpus: Path, out: Path) -> None:
    building.add([corpus], out, HashEncoder(), OPTIONS, replace=True)


def delete(ids: Path, out: Path) -> None:
    with Writer.open(out) as writer:
        writer.remove(ids.read_text(encoding="utf-8").split())
        writer.commit()


def apply(ids: Path, out: Path) -> None:
    """Change an index through an engine that has it open, as the service does."""
    engine = Engine(out, encoder=HashEncoder())
    engine.search("rain")
    replaced, *removed = ids.read_text(encoding="utf-8").split()
    new = [Document(f"new{n}", f"rain {n}") for n in range(3)]
    engine.apply([*new, *removed, Document(replaced, "another text for it"), "new1"])


def stream(acknowledged: Path, out: Path) -> None:
    """Add documents in many commits, while their segments are merged; append the id of each durable document."""
    setattr(carrying, "SETTLED", 1)  # noqa: B010
    setattr(carrying, "CROWDED", 1000)  # noqa: B010 - however slow the background is
    with Engine(out, encoder=HashEncoder()) as engine, acknowledged.open("a", encoding="utf-8") as file:
        for first in range(0, 400, 20):
            engine.add([Document(f"s{n}", f"snow {n}") for n in range(first, first + 20)])
            file.write(f"s{first + 19}\n")
            file.flush()


def merge(out: Path) -> None:
    """Merge the existing segments, as an engine does in the background; nothing else changes."""
    setattr(carrying, "SETTLED", 0)  # noqa: B010
    opened = [Collection.open(out)]
    while merging.merge(lambda: opened[-1], lambda commit: opened.extend(filter(None, [commit()]))):
        pass


def compact(out: Path) -> None:
    with Writer.open(out) as writer:
        writer.compact()


CHANGES: dict[str, Callable[..., None]] = {
    "build": build, "build fields": build_fields, "add": add, "delete": delete, "apply": apply,
    "compact": compact, "merge": merge, "stream": stream, "store a ranker": store_ranker,
}  # fmt: skip


def child(request: dict[str, Any], report: int) -> None:
    """Make the change and report the fault points passed; never return."""
    os.environ["LINKER_FAULT"] = request["fault"]
    importlib.reload(faults)
    passed: collections.Counter[str] = collections.Counter()
    point = faults.point

    def counted(name: str) -> None:
        passed[name] += 1
        point(name)

    setattr(faults, "point", counted)  # noqa: B010 - for mypy's sake
    status = 1
    try:
        CHANGES[request["change"]](*map(Path, request["paths"]))
        status = 0
    except BaseException:
        traceback.print_exc()
    os.write(report, json.dumps(passed).encode())
    os._exit(status)


def main() -> None:
    load_faiss()  # load once, or each child would spend longer loading it than making its change
    for line in sys.stdin:
        request = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            child(request, write)
        os.close(write)
        if request["after"] is not None:
            time.sleep(request["after"])
            os.kill(pid, signal.SIGKILL)
        with os.fdopen(read) as report:
            passed = report.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status, "passed": json.loads(passed or "{}")}), flush=True)


if __name__ == "__main__":
    main()
