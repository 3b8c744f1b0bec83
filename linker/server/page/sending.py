"""Files made for one answer, and the uploaded tables that are sent back with additional columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from linker.corpora import Columns, preview
from linker.review.project import Project
from linker.review.uploads import is_table, stored
from linker.server.jobs.indexing import UploadedFile


def sent(name: str, write: Callable[[Path], object]) -> FileResponse:
    """Send, under `name`, the file with this suffix that `write` writes, and then delete it."""
    with tempfile.NamedTemporaryFile(suffix=Path(name).suffix, delete=False) as made:
        path = Path(made.name)
    try:
        write(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        filename=name,
        media_type="application/octet-stream",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


def own_tables(project: Project) -> list[str]:
    """Return the names of the uploaded tables from which documents were made."""
    indexed = project.about.get("indexed", ())
    return [path.name for path in stored(project) if path.name in indexed and is_table(path)]


def own_table(project: Project, name: str) -> tuple[Path, Columns]:
    """Return an uploaded file, and how it was read. Raises HTTPException (404) if there is no file of this name."""
    path = next((path for path in stored(project) if path.name == name), None)
    if path is None:
        raise HTTPException(404)
    known = project.about.get("columns", {}).get(name)
    return path, UploadedFile.of({"path": name, "columns": known}).columns if known else preview(path).guess()
