"""Uploads: copies for the length of a request; files in the set-up form, with their formats, columns and trials."""

import contextlib
import functools
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile

from indexes.errors import Reason, reason_of
from linker.base.errors import InputError, LinkerError
from linker.corpora import Columns, Preview, columns_of, preview
from linker.corpora.dates import EITHER, ISO
from linker.corpora.dialects import UnknownEncodingError, check_delimiter, check_encoding
from linker.corpora.roles import Role
from linker.corpora.trials import Trial, trial
from linker.review.project import Project
from linker.review.uploads import stored
from linker.server.page.rendering import message

ROLES = {
    "posts": message("the texts to search and judge"),
    "articles": message("the articles or rows to find something for"),
    "": message("nothing: leave this file out"),
}
ASKED: dict[Role, str] = {
    "text": message("Text"), "title": message("Title"), "id": message("Id"), "date": message("Date"),
    "author": message("Author"), "url": message("Link"), "language": message("Language"),
}  # fmt: skip
HOW = ("sheet", "header_row", "encoding", "delimiter")
FORMATS = (
    ISO, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d %B %Y", "%d. %B %Y",
    f"{ISO}|%d.%m.%Y|%d/%m/%Y|%d %B %Y|%d. %B %Y", f"{ISO}|%d.%m.%Y|%m/%d/%Y|%d %B %Y|%d. %B %Y",
)  # fmt: skip
DOUBTFUL = message("The encoding could not be detected: if letters look wrong, choose another one.")
_UNSAFE = re.compile(r".*[/\\]|^\.+|\0")  # parts of a file name that would lead to another path


@contextlib.contextmanager
def copies_of(uploads: Iterable[UploadFile]) -> Iterator[list[Path]]:
    """Yield the paths of copies of the uploads that have a name, and delete them at the end.

    Raises InputError in place of a LinkerError raised meanwhile: its text has the uploads' names without their paths.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, upload in enumerate(upload for upload in uploads if upload.filename):
            path = Path(folder, str(number), _UNSAFE.sub("", upload.filename or "")[-60:] or "file")
            path.parent.mkdir()
            with path.open("wb") as copy:
                shutil.copyfileobj(upload.file, copy, 1 << 20)
            paths.append(path)
        try:
            yield paths
        except LinkerError as e:
            reason = reason_of(e)
            for path in paths:
                reason = reason.replace(str(path), path.name)
            raise InputError(reason) from None


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in the form: a preview of its content or why it cannot be read, its role, and the user's choices.

    `is_other`: whether it is now read differently from the rows shown in the form.
    """

    path: Path
    role: str
    preview: Preview | None = None
    problem: str = ""
    note: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)
    is_other: bool = False

    def column(self, role: Role) -> str:
        """Return the column chosen or guessed for a role, or an empty string."""
        guessed = self.preview.column(role) if self.preview else None
        return self.chosen.get(role, guessed or "")

    @property
    def date_format(self) -> str:
        """The format chosen or guessed for the dates; empty if the dates stay as they are."""
        guessed = next(iter(self.preview.date_formats), "") if self.preview else ""
        return self.chosen.get("date_format", guessed)

    @property
    def formats(self) -> Sequence[str]:
        """The formats to choose from, matching ones first."""
        fitting = self.preview.date_formats if self.preview else ()
        return tuple(dict.fromkeys((*fitting, *FORMATS)))

    @property
    def shown(self) -> str:
        """How the rows shown in the form were read, to detect a change."""
        return "|".join(_reading(self.preview)) if self.preview else ""

    @property
    def columns(self) -> Columns:
        """How to read the file. Raises InputError if no column is chosen for the text, or one column for two roles."""
        assert self.preview is not None
        roles: dict[str, Role] = {}
        for role in ASKED:
            if name := self.column(role):
                if name in roles:
                    text = f"the column {name!r} is chosen twice: choose a different one for each field"
                    raise InputError(Reason(text, "chosen-twice", name=name))
                roles[name] = role
        known = self.preview
        date_format = self.date_format or None
        return columns_of(roles, date_format, known.encoding, known.delimiter, known.sheet, known.header_row)

    def trial(self) -> Trial | None:
        """Return the result of reading the file by `columns`; None if a column is missing or nothing is readable."""
        try:
            return _trial(self.path, self.columns, self.path.stat().st_mtime_ns) if self.preview else None
        except (LinkerError, OSError):
            return None


@functools.lru_cache(maxsize=8)
def _trial(path: Path, columns: Columns, _: int) -> Trial:
    return trial(path, columns)


def uploads_of(project: Project, form: FormData | None = None) -> list[Upload]:
    """Return the files of a review that are not indexed yet, as the form shows them, the posts first."""
    about = project.about
    indexed, roles = about.get("indexed", ()) if project.ready else (), about.get("roles", {})
    uploads = [
        _upload(path, roles.get(path.name, "posts"), form)
        for path in stored(project)
        if path.name not in indexed
    ]
    return sorted(uploads, key=lambda u: (list(ROLES).index(u.role), u.path.name))


def _upload(path: Path, role: str, form: FormData | None) -> Upload:
    how, choice, reading = dict[str, str](), dict[str, str](), ""
    if form is not None:
        values = {
            what: str(form.get(f"{what}.{path.name}", "")).strip() for what in (*HOW, *ASKED, "date_format")
        }
        role, reading = str(form.get(f"role.{path.name}", "")), str(form.get(f"shown.{path.name}", ""))
        how = {what: values[what] for what in HOW}
        choice = {what: values[what] for what in (*ASKED, "date_format") if f"{what}.{path.name}" in form}
    role = role if role in list(ROLES) else ""
    try:
        view, note = look(path, how)
    except LinkerError as e:
        return Upload(path, role, problem=reason_of(e).replace(str(path), path.name))
    if form is not None and reading != "|".join(_reading(view)):
        return Upload(path, role, view, note=note, is_other=True)
    known = {
        what: value for what, value in choice.items() if what == "date_format" or value in ("", *view.columns)
    }
    return Upload(path, role, view, note=note, chosen=known)


def _reading(table: Preview) -> tuple[str, ...]:
    return tuple(str(getattr(table, what) or "") for what in HOW)


def look(path: Path, how: Mapping[str, str] | None = None) -> tuple[Preview, str]:
    """Return a file's content, and a note if its encoding is uncertain; `how` holds the user's choices.

    Raises InputError or another LinkerError.
    """
    how = how or {}
    row, delimiter, encoding = how.get("header_row", ""), how.get("delimiter", ""), how.get("encoding", "")
    options: dict[str, Any] = {
        "sheet": how.get("sheet") or None,
        "header_row": int(row) if row.isdecimal() and int(row[:6]) > 0 else None,
        "delimiter": check_delimiter(delimiter) if delimiter else None,
        "encoding": check_encoding(encoding) if encoding else None,
    }
    try:
        return preview(path, **options), ""
    except UnknownEncodingError:
        return preview(path, **options | {"encoding": "cp1252"}), DOUBTFUL


def as_date(form: str) -> str:
    """Return a sample date, whose day cannot be a month, in one date format or in each of several."""
    day = datetime(2022, 3, 14, 15, 9)
    return " · ".join(day.date().isoformat() if f == ISO else day.strftime(f) for f in form.split(EITHER))
