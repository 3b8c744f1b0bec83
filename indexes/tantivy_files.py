"""The files of a tantivy index: immutable copies of a live folder, and live folders made from copies.

A segment file is written once and never changed; `meta.json`, replaced at each commit and merge, names the
segments that count.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from indexes import faults
from indexes.interface import DamagedError, IndexesError
from indexes.storage import link_or_copy

META, MANAGED = "meta.json", ".managed.json"
ATTEMPTS = 1000


def fold(live: Path, target: Path) -> None:
    """Make the new folder `target` an immutable copy of the last commit, of hard links where possible.

    A merge in the background may replace files meanwhile; but files go only after meta.json has changed, so what
    was linked is complete if meta.json is the same before and after.
    """
    for _ in range(ATTEMPTS):
        meta = (live / META).read_bytes()
        target.mkdir()
        with contextlib.suppress(FileNotFoundError):
            for name in _segment_files(live, meta):
                link_or_copy(live / name, target / name)
                faults.point("text.linked")
            if (live / META).read_bytes() == meta:
                (target / META).write_bytes(meta)
                return
        shutil.rmtree(target)
    raise IndexesError(f"{live} changes too fast for a snapshot: try again")


def unfold(snapshot: Path | None, scratch: Path) -> None:
    """Make the empty or absent folder `scratch` a live one that starts from a copy (None: from nothing)."""
    scratch.mkdir(parents=True, exist_ok=True)
    if any(scratch.iterdir()):
        raise IndexesError(f"{scratch} is not empty: delete what is in it, or choose another folder")
    if snapshot is None:
        return
    _check_complete(snapshot)
    files = [file for file in snapshot.iterdir() if file.name != META]
    for file in files:
        link_or_copy(file, scratch / file.name)
        faults.point("scratch.linked")
    shutil.copyfile(snapshot / META, scratch / META)
    # what tantivy may delete from the folder when merging has made it superfluous
    (scratch / MANAGED).write_text(json.dumps([META, *(file.name for file in files)]))


@contextlib.contextmanager
def links(snapshot: Path) -> Iterator[Path]:
    """Yield a short-lived folder of links: tantivy writes a lock file beside whatever it opens."""
    _check_complete(snapshot)
    folder = Path(tempfile.mkdtemp(prefix="bm25-"))
    try:
        for file in snapshot.resolve().iterdir():
            (folder / file.name).symlink_to(file)
        yield folder
    finally:
        for _ in range(100):  # tantivy's watcher may still be locking the folder, which makes a file in it
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.01)


def _check_complete(snapshot: Path) -> None:
    """Raise FileNotFoundError without the folder, DamagedError without its meta.json."""
    if META not in {file.name for file in snapshot.iterdir()}:
        raise DamagedError(f"{snapshot / META} is missing: restore it, or rebuild the index")


def _segment_files(live: Path, meta: bytes) -> Iterator[str]:
    """Yield the files that a meta.json refers to: `<segment>.<part>`, and `<segment>.<stamp>.del` of removals."""
    segments = {s["segment_id"].replace("-", ""): s["deletes"] for s in json.loads(meta)["segments"]}
    for path in live.iterdir():
        segment, _, part = path.name.partition(".")
        if segment in segments:
            removals = segments[segment]
            if not part.endswith("del") or (removals and part == f"{removals['opstamp']}.del"):
                yield path.name
