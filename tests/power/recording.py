"""The disk calls of a change, recorded by a preloaded shim (shim.c) and checked for completeness."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers import ROOT as REPOSITORY
from tests.power.disk import ROOT, Disk, Entries, History, Mark, Op, Sync, Tree, Truncate, Write

SHIM = Path(__file__).with_name("shim.c")


class NoCompilerError(Exception):
    """No compiler for the shim is available."""


@functools.cache
def shim() -> Path:
    """Compile the shim and return it. Raises NoCompilerError."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        raise NoCompilerError("recording system calls needs Linux and a C compiler (cc)")
    library = Path(tempfile.mkdtemp(prefix="power-")) / "shim.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", library, SHIM, "-ldl", "-lpthread"], check=True
    )
    return library


def require_shim() -> None:
    """Skip the test if there is no compiler; in CI that is a failure."""
    try:
        shim()
    except NoCompilerError as e:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(e))


def record(jobs: Sequence[str], work: Path) -> dict[str, History]:
    """Make changes in one separate process; return the history of each one's folder `work/JOB`.

    A job is the name of a change, or NAME:LACKING to leave out the fsyncs of "files", of "folders", of what has this
    name or is below it, or those within the function of that name. Raises AssertionError unless replaying the
    recording reproduces the existing files, byte for byte.
    """
    environment = {**os.environ, "LD_PRELOAD": str(shim()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.power.record_changes", str(work), *jobs]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {job: history(work, job) for job in jobs}


def history(work: Path, job: str) -> History:
    """Read the recording of a change, and check that nothing is missing."""
    start = Disk()
    inodes = _snapshot(work / f"{job}.before", work / f"{job}.inodes", start)
    found = History(start, list(_Reader(start, inodes).read((work / f"{job}.log").read_bytes())))
    replayed, real = found.whole(len(found.ops)), read_tree(work / job)
    differing = sorted(p for p in replayed.keys() | real.keys() if replayed.get(p, 0) != real.get(p, 0))
    assert not differing, f"{job}: the recording is not complete: {differing}"
    return found


def read_tree(folder: Path) -> Tree:
    """Return all files and folders below a folder."""
    return {
        p.relative_to(folder).as_posix(): None if p.is_dir() else p.read_bytes() for p in folder.rglob("*")
    }


def _snapshot(copy: Path, listing: Path, disk: Disk) -> dict[int, int]:
    """Fill a disk from a copy of the initial state; return its inodes by the kernel's."""
    inodes: dict[int, int] = {}
    folders = {"": ROOT}
    for line in listing.read_text(encoding="utf-8").splitlines():
        number, _, path = line.partition(" ")
        inode = inodes.setdefault(int(number), len(inodes) + 1 if path else ROOT)
        if path:
            above, _, name = path.rpartition("/")
            disk.folders[folders[above]][name] = inode
        if (copy / path).is_dir():
            folders[path] = inode
            disk.folders.setdefault(inode, {})
        else:
            disk.files[inode] = (copy / path).read_bytes()
    return inodes


class _Reader:
    """Follows a log, so that every name and kernel inode (the kernel reuses inodes) is unambiguous."""

    def __init__(self, start: Disk, inodes: dict[int, int]) -> None:
        self._start, self._inodes = start, inodes
        self._names = {inode: dict(names) for inode, names in start.folders.items()}
        self._next = 1 + max([*start.files, *start.folders])

    def read(self, log: bytes) -> Iterator[Op]:
        """Yield the calls, in order."""
        place = 0
        while place < len(log):
            lines = []
            for _ in range(3):
                end = log.index(b"\n", place)
                lines.append(os.fsdecode(log[place:end]))
                place = end + 1
            kind, inode, offset, size = lines[0].split()
            data = log[place : place + int(size)]
            place += len(data)
            yield from self._ops(kind, int(inode), int(offset), lines[1], lines[2], data)

    def _ops(self, kind: str, inode: int, offset: int, path: str, other: str, data: bytes) -> Iterator[Op]:
        if kind == "mark":
            yield Mark()
        elif kind == "sync":
            yield Sync(self._inodes[inode])
        elif kind == "write":
            yield Write(self._inodes[inode], offset, data)
        elif kind == "truncate":
            yield Truncate(self._inodes[inode], offset)
        elif kind == "open":
            yield from self._open(path, inode, truncated=bool(offset))
        elif kind == "mkdir":
            new = self._new(inode)
            self._start.folders[new], self._names[new] = {}, {}
            yield self._change((path, new))
        elif kind == "link":
            yield self._change((path, self._inodes[inode]))
        elif kind == "unlink":
            yield self._change((path, None))
        elif kind == "rename":
            yield self._change((path, None), (other, self._at(path)))
        elif kind == "exchange":
            yield self._change((path, self._at(other)), (other, self._at(path)))
        else:
            raise AssertionError(f"unknown call {kind}")

    def _open(self, path: str, inode: int, *, truncated: bool) -> Iterator[Op]:
        folder, name = self._place(path)
        if name not in self._names[folder]:
            yield self._change((path, self._new(inode)))
        elif truncated:
            yield Truncate(self._names[folder][name], 0)

    def _new(self, inode: int) -> int:
        self._inodes[inode] = self._next
        self._next += 1
        return self._inodes[inode]

    def _place(self, path: str) -> tuple[int, str]:
        *above, name = path.split("/")
        folder = ROOT
        for part in above:
            folder = self._names[folder][part]
        return folder, name

    def _at(self, path: str) -> int:
        folder, name = self._place(path)
        return self._names[folder][name]

    def _change(self, *entries: tuple[str, int | None]) -> Entries:
        changes = tuple((*self._place(path), inode) for path, inode in entries)
        for folder, name, inode in changes:
            self._names[folder].pop(name, None)
            if inode is not None:
                self._names[folder][name] = inode
        return Entries(changes)
