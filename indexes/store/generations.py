"""Older generations that an index keeps: their manifests under `generations/`, and the files that these list.

The number of generations to keep is in a file next to the manifests, so that it applies to every later change; without
the file, none are kept.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
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
    """Return how many older generations an index keeps. Raises DamagedError if the file cannot be parsed."""
    path = directory / KEEP
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return 0
    if not re.fullmatch(rb"[0-9]{1,6}\n", content):
        raise DamagedError(f"{path} is damaged: say how many older generations to keep, with `keep`")
    return int(content)


def set_limit(directory: Path, keep: int) -> None:
    """From the next commit on, keep the last `keep` older generations; a sweep deletes any beyond the limit."""
    path = directory / KEEP
    if keep:
        path.parent.mkdir(exist_ok=True)
        writing.sync(directory)
        writing.replace_file(path, b"%d\n" % keep)
    elif path.exists():
        path.unlink()
        writing.sync(path.parent)


def kept(directory: Path, manifest: Manifest) -> dict[int, Manifest]:
    """Return the manifests of the older generations that are kept, by number. Raises IndexesError, DamagedError."""
    folder, generations = directory / storage.GENERATIONS, {}
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    for name in sorted(name for name in names if re.fullmatch(r"[0-9]{6,}\.json", name)):
        try:
            older = manifests.load(directory, f"{storage.GENERATIONS}/{name}")
        except IndexesError:
            if (folder / name).exists():
                raise
            continue  # a writer has deleted it meanwhile
        if f"{older.generation:06d}.json" != name:
            raise DamagedError(
                f"{folder / name} contains generation {older.generation}: delete the file to discard it"
            )
        # A manifest as new as the current one was copied here for a commit that never happened.
        if older.generation < manifest.generation:
            generations[older.generation] = older
    return dict(sorted(generations.items()))


def files(directory: Path, manifest: Manifest) -> dict[str, FileRecord]:
    """Return the files of the last generation, `manifest`, and of the kept older ones. Raises DamagedError."""
    return _files_of((*kept(directory, manifest).values(), manifest))


def _files_of(all_: Iterable[Manifest]) -> dict[str, FileRecord]:
    return {name: record for manifest in all_ for name, record in manifest.files.items()}


def with_kept(directory: Path) -> Manifest:
    """Return the last generation's manifest, plus the files of the kept older ones. Raises DamagedError."""
    manifest = manifests.load(directory)
    return dataclasses.replace(manifest, files=files(directory, manifest))


def retain(directory: Path, manifest: Manifest) -> None:
    """Before a commit, keep the last generation, `manifest`, unless its build is unfinished or none are kept."""
    if limit(directory) and manifest.build.complete:
        data = (directory / manifests.NAME).read_bytes()
        writing.replace_file(directory / _name(manifest.generation), data)


def sweep(directory: Path, manifest: Manifest, folders: Sequence[str] = storage.FOLDERS) -> None:
    """Discard the generations beyond the limit, and delete files that no remaining generation lists.

    `manifest` is the last generation. Only files in `folders` are deleted, but not those of a merge in progress.
    Raises DamagedError.
    """
    older, most = kept(directory, manifest), limit(directory)
    for number in list(older)[: max(len(older) - most, 0)]:
        (directory / _name(number)).unlink()
        # A manifest must not outlive its files.
        writing.sync(directory / storage.GENERATIONS)
        del older[number]
    names = {_name(number) for number in older} | ({KEEP} if most else set())
    with storage.merge_lock(directory) as ended:
        folders = [folder for folder in folders if folder != storage.MERGING or ended]
        ownership.sweep(directory, {*_files_of((*older.values(), manifest)), *names}, folders)


def checkout(directory: Path, generation: int) -> Manifest:
    """Commit a generation with the content of a kept older one; return its manifest. Nothing is copied.

    Raises IndexesError if that generation is not kept or the index is partly on a server, DamagedError if one of
    its files is damaged, LockedError if another process is writing to the index.
    """
    # Without an index, this raises before a lock file is created.
    manifests.load(directory)
    with storage.disk_errors(f"writing to {directory}"), storage.write_lock(directory):
        ownership.refuse_links(directory)
        last = manifests.load(directory)
        refuse_server(last, "an older generation cannot be checked out")
        older = kept(directory, last)
        if generation not in older:
            others = f"it keeps {', '.join(map(str, older))}" if older else "none are kept (see `keep`)"
            raise IndexesError(f"{directory} does not keep generation {generation}: {others}")
        if lines := storage.damage(directory, older[generation]):
            raise DamagedError("; ".join(lines) + ": check out another generation, or restore a backup")
        manifest = dataclasses.replace(older[generation], generation=last.generation + 1)
        retain(directory, last)
        storage.replace_manifest(directory, manifest, manifest.files)
        sweep(directory, manifest)
    return manifest


def refuse_server(manifest: Manifest, what: str) -> None:
    """Raise IndexesError if a part of the index is on Elasticsearch, which holds only the last generation."""
    if manifest.elastic:
        raise IndexesError(
            f"{what}: the part on Elasticsearch ({manifest.elastic['index']}) holds only the last generation: take "
            "snapshots of it there, each with a copy of the directory made while nobody writes"
        )


def _name(generation: int) -> str:
    return f"{storage.GENERATIONS}/{generation:06d}.json"
