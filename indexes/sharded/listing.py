"""A directory that lists shards: it can be named wherever an index can, and represents all of them.

Its `shards.json` lists their directories, by relative paths if they are next to it, so that all can be moved together.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from indexes.address import Address
from indexes.cluster import manifest_of
from indexes.disk.reading import open_inside
from indexes.disk.writing import replace_file
from indexes.interface import DamagedError, IndexesError
from indexes.sharded import agreement
from indexes.store import manifest as manifests
from indexes.store.records import Manifest

NAME = manifests.SHARDS
FORMAT = 1
MOST_BYTES = 1 << 20


def is_index(directory: Path) -> bool:
    """Return whether a directory holds an index, lists shards, or is an address in place of a directory."""
    return (
        bool(Address.of(directory)) or (directory / manifests.NAME).is_file() or (directory / NAME).is_file()
    )


def shards_of(directory: Path) -> list[Path]:
    """Return the directories that `directory` lists, or itself. Raises DamagedError if its list cannot be read."""
    if Address.of(directory) or (directory / manifests.NAME).exists() or not (directory / NAME).exists():
        return [directory]
    path = directory / NAME
    try:
        with open_inside(directory, NAME) as file:
            values = orjson.loads(file.read(MOST_BYTES))
    except (OSError, ValueError) as e:
        raise DamagedError(
            f"{path} cannot be read ({e}): join the shards again with `linker index join`"
        ) from None
    if not _is_list(values):
        raise DamagedError(
            f"{path} does not list directories: join the shards again with `linker index join`"
        )
    return [directory / name for name in values["shards"]]


def manifests_of(*directories: Path) -> list[Manifest]:
    """Return the manifests of the directories that make up one or more indexes, leaving out unreadable ones.

    A directory may be an address of an index on a cluster. Raises the same errors as `shards_of`, and IndexesError if
    none can be read.
    """
    found: list[Manifest] = []
    error: IndexesError | None = None
    for shard in (shard for directory in directories for shard in shards_of(directory)):
        try:
            found.append(manifest_of(shard))
        except IndexesError as e:
            error = e
    if error is not None and not found:
        raise error
    return found


def check_once(directories: Sequence[Path]) -> None:
    """Raise IndexesError if a directory is named twice, or no directory is named."""
    if not directories:
        raise IndexesError("name the directory of an index, or several")
    if len(directories) > 1 and (address := next(filter(None, map(Address.of, directories)), None)):
        raise IndexesError(
            f"{address} is an index on a cluster, which has shards of its own: search it alone, or copy all of them "
            "into a new index there (`linker index join`)"
        )
    _check_different(directories)


def _check_different(directories: Sequence[Path]) -> None:
    # `Path.resolve` raises RuntimeError for a loop of links; opening the index gives a better message.
    if len({os.path.realpath(directory) for directory in directories}) < len(directories):
        raise IndexesError("a directory is named twice: name each once")


def _is_list(values: Any) -> bool:
    if not isinstance(values, dict) or set(values) != {"format", "shards"} or values["format"] != FORMAT:
        return False
    names = values["shards"]
    return isinstance(names, list) and bool(names) and all(isinstance(n, str) and n for n in names)


def join(target: Path, directories: Sequence[Path]) -> None:
    """Make the directory `target` represent the indexes in `directories`, in this order; nothing is copied.

    If `target` is an address, the indexes, which may be on a cluster, too, are copied into a new index there (see
    `copy_into`). Raises IndexesError if they cannot be searched together, one is named twice or itself lists shards,
    or `target` contains an index; OSError.
    """
    if address := Address.of(target):
        from indexes.sharded.copying import copy_into

        _check_different(directories)
        copy_into(address, [shard for directory in directories for shard in shards_of(directory)])
        return
    if (target / manifests.NAME).exists():
        raise IndexesError(f"{target} holds an index: name a new directory")
    check_once(directories)
    agreement.check([(directory, manifests.load(directory)) for directory in directories])
    home, real = target.resolve(), [directory.resolve() for directory in directories]
    names = [os.path.relpath(d, home) if home.parent in d.parents else str(d) for d in real]
    target.mkdir(parents=True, exist_ok=True)
    content = orjson.dumps({"format": FORMAT, "shards": names}, option=orjson.OPT_INDENT_2)
    replace_file(target / NAME, content)
