"""`linker index backup|restore|checkout`: copies of an index, and its older generations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, print_result
from linker.cli import cluster


def backup(
    directory: Index,
    out: Annotated[
        str,
        Opt(
            "A new folder, a new file ending in .tar, or - to write a tar archive to stdout.",
            "",
            metavar="OUT",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Copy an index while it is in use.

    Copies and verifies the last committed generation; writers and searches continue.

    Example: linker index backup news.index news.tar
    """
    from indexes.store import backup as backups

    cluster.refuse(directory, "backups")
    if out != "-":
        manifest = backups.backup(directory, Path(out))
    elif as_json:
        raise typer.BadParameter("the archive goes to stdout: leave out --json, or name a file")
    elif sys.stdout.isatty():
        raise typer.BadParameter(
            "an archive cannot be shown on a terminal: redirect the output, or name a file"
        )
    else:
        backups.write_archive(directory, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation, "files": len(manifest.files)},
        f"{out}: generation {manifest.generation} of {directory}, {manifest.documents} documents, "
        f"{len(manifest.files)} files, all as they were written",
        as_json,
    )


def restore(
    source: Annotated[
        str, Opt("A backup by `index backup`; - reads a tar archive from stdin.", "", metavar="BACKUP")
    ],
    directory: Annotated[Path, Opt("Directory of the new index, absent or empty.", "", metavar="DIR")],
    as_json: AsJson = False,
) -> None:
    """Restore an index from a backup. The checksum of every file is verified.

    Example: linker index restore news.tar restored.index
    """
    from indexes.store import backup as backups

    if source == "-":
        manifest = backups.restore_archive(sys.stdin.buffer, directory, "the archive on stdin")
    else:
        manifest = backups.restore(Path(source), directory)
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation},
        f"{directory}: generation {manifest.generation} restored, {manifest.documents} documents",
        as_json,
    )


def checkout(
    directory: Index,
    generation: Annotated[int, Opt("", "", low=0, metavar="GENERATION")],
    as_json: AsJson = False,
) -> None:
    """Bring back an older generation of an index.

    Commits a new generation with the content of one kept by --keep (`index info` lists them).

    Example: linker index checkout news.index 3
    """
    from indexes.store import generations

    cluster.refuse(directory, "older generations")
    manifest = generations.checkout(directory, generation)
    print_result(
        {"documents": manifest.documents, "generation": manifest.generation, "from": generation},
        f"{directory}: generation {manifest.generation} has the content of generation {generation}, "
        f"{manifest.documents} documents",
        as_json,
    )
