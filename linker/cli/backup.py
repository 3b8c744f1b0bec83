"""`linker index backup|restore|checkout`: copies of an index, and its older generations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from linker.cli.common import AsJson, Index, print_json

Keep = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=999_999,
        metavar="N",
        help="Keep this many older generations for `index checkout`, from now on.",
        show_default=False,
    ),
]


def backup(
    directory: Index,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="A new folder, a new file ending in .tar, or - for a tar archive on stdout.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Copy the last committed generation, verified, while writers and searches go on."""
    from indexes.store import backup as backups

    if out != "-":
        manifest = backups.backup(directory, Path(out))
    elif as_json:
        raise typer.BadParameter("the archive goes to stdout: leave out --json, or name a file")
    elif sys.stdout.isatty():
        raise typer.BadParameter("a terminal shows no archive: redirect the output, or name a file")
    else:
        backups.write_archive(directory, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    _report(
        {"documents": manifest.documents, "generation": manifest.generation, "files": len(manifest.files)},
        f"{out}: generation {manifest.generation} of {directory}, {manifest.documents} documents, "
        f"{len(manifest.files)} files, all as they were written",
        as_json,
    )


def restore(
    source: Annotated[
        str,
        typer.Argument(
            metavar="BACKUP", help="What `index backup` wrote; - for an archive on stdin.", show_default=False
        ),
    ],
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The new index: absent or an empty folder.", show_default=False),
    ],
    as_json: AsJson = False,
) -> None:
    """Make an index of a backup; every file is compared with its checksum."""
    from indexes.store import backup as backups

    if source == "-":
        manifest = backups.restore_archive(sys.stdin.buffer, directory, "the archive on stdin")
    else:
        manifest = backups.restore(Path(source), directory)
    _report(
        {"documents": manifest.documents, "generation": manifest.generation},
        f"{directory}: generation {manifest.generation} restored, {manifest.documents} documents",
        as_json,
    )


def checkout(
    directory: Index,
    generation: Annotated[int, typer.Argument(min=0, metavar="GENERATION", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Commit a generation with the content of an older one that --keep kept; `index info` lists them."""
    from indexes.store import generations

    manifest = generations.checkout(directory, generation)
    _report(
        {"documents": manifest.documents, "generation": manifest.generation, "from": generation},
        f"{directory}: generation {manifest.generation} has the content of generation {generation}, "
        f"{manifest.documents} documents",
        as_json,
    )


def _report(values: dict[str, int], line: str, as_json: bool) -> None:
    if as_json:
        print_json(values)
    else:
        print(line)
