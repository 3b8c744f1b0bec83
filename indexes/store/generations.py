"""Older generations that an index keeps: their manifests under `generations/`, and so their files.

How many are kept is in a file beside them, so that it holds for every later change. Without one none are.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from indexes.disk import writing
from indexes.disk.writing import FileRecord
from indexes.interface import DamagedError, IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import ownership
from indexes.store.records import Manifest

KEEP = f"{storage.GENERATIONS}/keep"


def limit(directory: Path) -> int:
    """Return how many older generations an index keeps. Raises DamagedError."""
    path = directory / KEEP
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return 0
    if not re.fullmatch(rb"[0-9]{1,6}\n", content):
        raise DamagedError(f"{path} is damaged: say how many older generations to keep, with --keep")
    return int(content)


def set_limit(directory: Path, keep: int) -> None:
    """Keep the last `keep` older generations from the next commit on; what is kept beyond that goes with a sweep."""
    path = directory / KEEP
    if keep:
        path.parent.mkdir(exist_ok=True)
        writing.sync(directory)
        writing.replace_file(path, b"%d\n" % keep)
    elif path.exists():
        path.unlink()
        writing.sync(path.parent)


def kept(directory: Path, manifest: Manifest) -> dict[int, Manifest]:
    """Return the older generations that are kept beside `manifest`, the last one, by number, ascending.

    Raises DamagedError.
    """
    folder, found = directory / storage.GENERATIONS, {}
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    for name in sorted(name for name in names if re.fullmatch(r"[0-9]{6,}\.json", name)):
        try:
            older = manifests.load(directory, f"{storage.GENERATIONS}/{name}")
        except IndexesError:
            if (folder / name).exists():
                raise
            continue  # a writer gave it up meanwhile
        if f"{older.generation:06d}.json" != name:
            raise DamagedError(f"{folder / name} is generation {older.generation}: delete it to give it up")
        if older.generation < manifest.generation:  # else its commit never came
            found[older.generation] = older
    return dict(sorted(found.items()))


def files(directory: Path, manifest: Manifest) -> dict[str, FileRecord]:
    """Return the files of the last generation, `manifest`, and of those that are kept. Raises DamagedError."""
    all_files: dict[str, FileRecord] = {}
    for generation in (*kept(directory, manifest).values(), manifest):
        all_files |= generation.files
    return all_files


def with_kept(directory: Path) -> Manifest:
    """Return the last generation's manifest, with the files of those that are kept besides. Raises DamagedError."""
    manifest = manifests.load(directory)
    return dataclasses.replace(manifest, files=files(directory, manifest))


def retain(directory: Path, manifest: Manifest) -> None:
    """Before a commit, put the last generation, `manifest`, with those that are kept; an unfinished build is not."""
    if limit(directory) and manifest.build.complete:
        data = (directory / manifests.NAME).read_bytes()
        writing.replace_file(directory / _name(manifest.generation), data)


def sweep(directory: Path, manifest: Manifest, folders: Iterable[str] = storage.FOLDERS) -> None:
    """Give up the generations beyond the limit; delete what neither those left nor the last one, `manifest`, list."""
    numbers = list(kept(directory, manifest))
    most = limit(directory)
    for number in numbers[: max(len(numbers) - most, 0)]:
        (directory / _name(number)).unlink()
        # a manifest must not outlive its files
        writing.sync(directory / storage.GENERATIONS)
    left = kept(directory, manifest)
    own = {_name(number) for number in left} | ({KEEP} if most else set())
    ownership.sweep(directory, {*files(directory, manifest), *own}, folders)


def checkout(directory: Path, generation: int) -> Manifest:
    """Commit a generation with the content of an older one that is kept, and return it; nothing is copied.

    Raises IndexesError where it is not kept or the index is partly on a server, DamagedError, LockedError.
    """
    manifests.load(directory)  # no lock where there is no index
    with storage.disk_errors(f"writing to {directory}"), storage.write_lock(directory):
        ownership.refuse_links(directory)
        last = manifests.load(directory)
        refuse_server(last, "an older generation cannot be checked out")
        older = kept(directory, last)
        if generation not in older:
            others = f"it keeps {', '.join(map(str, older))}" if older else "none are kept (see --keep)"
            raise IndexesError(f"{directory} does not keep generation {generation}: {others}")
        if lines := storage.damage(directory, older[generation]):
            raise DamagedError("; ".join(lines) + ": check out another generation, or restore a backup")
        manifest = dataclasses.replace(older[generation], generation=last.generation + 1)
        retain(directory, last)
        storage.replace_manifest(directory, manifest)
        sweep(directory, manifest)
    return manifest


def refuse_server(manifest: Manifest, what: str) -> None:
    """Raise IndexesError if a part of the index is on Elasticsearch, of which there is one state alone: the present."""
    if manifest.elastic:
        raise IndexesError(
            f"{what}: the part on Elasticsearch ({manifest.elastic['index']}) is of the present generation alone"
        )


def _name(generation: int) -> str:
    return f"{storage.GENERATIONS}/{generation:06d}.json"
