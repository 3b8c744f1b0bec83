"""Shared code of targets that read one file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.engine import Run, Target


def file_target(
    name: str,
    file: str,
    read: Callable[[Path], object],
    seeds: Sequence[str | bytes],
    tokens: Sequence[str] = (),
    cases: int = 500,
    preload: tuple[str, ...] = (),
) -> Target:
    """Make a target that puts each case into a file of this name and reads it."""

    def prepare(work: Path) -> tuple[Sequence[bytes], Run]:
        path = work / file

        def run(data: bytes) -> None:
            path.write_bytes(data)
            read(path)

        return encoded(seeds), run

    return Target(name, prepare, tuple(t.encode() for t in tokens), cases=cases, preload=preload)


def encoded(seeds: Sequence[str | bytes]) -> list[bytes]:
    return [s.encode() if isinstance(s, str) else s for s in seeds]


def nearest(data: bytes, originals: Sequence[bytes]) -> int:
    """Return the file from which a case was probably made, by length; an unchanged file is always recognised."""
    if data in originals:
        return originals.index(data)
    return min(range(len(originals)), key=lambda n: abs(len(originals[n]) - len(data)))
