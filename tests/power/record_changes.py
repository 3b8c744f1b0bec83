"""Makes changes under the shim: `python -m tests.power.record_changes WORK JOB...`; see recording.record."""

import ctypes
import os
import shutil
import stat
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from unittest import mock

os.environ["HF_HUB_OFFLINE"] = "1"

from tests.power import changes

KINDS: dict[str, Callable[[int], bool]] = {"files": stat.S_ISREG, "folders": stat.S_ISDIR}


def record(job: str, work: Path) -> None:
    """Prepare the initial state in `work/JOB`, copy it, and make the change while the shim records."""
    name, _, lacking = job.partition(":")
    change, shim, box = changes.CHANGES[name], ctypes.CDLL(None), work / job
    box.mkdir()
    change.prepare(box)
    shutil.copytree(box, work / f"{job}.before")
    with (work / f"{job}.inodes").open("w", encoding="utf-8") as file:
        for path in [box, *sorted(box.rglob("*"))]:
            below = path.relative_to(box).as_posix()
            file.write(f"{path.stat().st_ino} {'' if path == box else below}\n")
    with (
        mock.patch.object(os, "fsync", _fsync_without(lacking)),
        mock.patch.object(changes, "acknowledged", shim.power_mark),
    ):
        shim.power_begin(os.fsencode(box), os.fsencode(work / f"{job}.log"))
        change.make(box)
        shim.power_mark()
        assert shim.power_end() == 0, "the log could not be written"


def _fsync_without(lacking: str) -> Callable[[int], None]:
    """Return an fsync that does nothing for a kind of file, below a name, or when a function of that name calls it."""
    real = os.fsync
    if not lacking:
        return real

    def fsync(descriptor: int) -> None:
        if lacking in KINDS:
            left_out = KINDS[lacking](os.fstat(descriptor).st_mode)
        else:
            # Flushes that a commit makes at the same time are made in several threads, so by no function of its own.
            names = [*Path(f"/proc/self/fd/{descriptor}").readlink().parts]
            names += [frame.f_code.co_name for frame, _ in traceback.walk_stack(None)]
            left_out = lacking in names
        if not left_out:
            real(descriptor)

    return fsync


if __name__ == "__main__":
    folder, *jobs = sys.argv[1:]
    for asked in jobs:
        record(asked, Path(folder))
