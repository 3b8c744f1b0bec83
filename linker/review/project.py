"""Reviews on disk: a review's folder, a folder of reviews, or an index with its ledger next to it.

A review's folder has linker's mark (`lock`, see `linker.review.ownership`). It contains `index/`, `review.sqlite` (the
ledger: everything that people decided), `uploads/` (the files as uploaded) and `project.json` (its name and how the
uploads were used).
"""

import contextlib
import errno
import os
import re
import tempfile
import unicodedata
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from indexes.address import Address
from indexes.disk import writing
from indexes.errors import Reason, reason_of
from indexes.sharded import is_index
from linker.base.errors import InputError
from linker.base.files import read_json, write_atomically
from linker.review import ownership
from linker.review.ownership import ABOUT, INDEX, UNFINISHED, UPLOADS

LEDGER, MAP, MATCHES = "review.sqlite", "map.bin", "matches.json"
GROUPS, GROUPS_LEDGER = "groups.json", "groups.sqlite"
MAX_NAME = 80  # maximum length in characters of a review's name
_FORM = {"roles": dict, "indexed": list, "columns": dict}  # entries of project.json
_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True)
class Project:
    """One review: its `key` (the folder's name, used in URLs), its folder, index and ledger.

    A review whose index was opened directly has no folder of its own: nothing can be uploaded to it. `problem` says
    why a review is unusable; other reviews are not affected.
    """

    key: str
    name: str
    index: Path
    ledger: Path
    folder: Path | None = None
    problem: str = ""

    @property
    def ready(self) -> bool:
        """Whether there is an index to read from."""
        return not self.problem and is_index(self.index)

    @property
    def is_grouping(self) -> bool:
        """Whether the review was begun to group its documents, and therefore opens with the groups."""
        return bool(self.about.get("job") == "groups")

    def ledger_of(self, review: str) -> Path:
        """Return the ledger of another review of the same index, by name; an empty name means the project's own."""
        if not review:
            return self.ledger
        return self.ledger.with_name(f"{self.ledger.name.removesuffix(LEDGER)}{review}.{LEDGER}")

    @property
    def uploads(self) -> Path:
        """The folder of uploaded files. Raises InputError if the review has none."""
        return self.own_folder / UPLOADS

    @property
    def map(self) -> Path:
        """The file with the map of the documents, made by a job."""
        return self.ledger.with_name(self.ledger.name.removesuffix(LEDGER) + MAP)

    @property
    def matches(self) -> Path:
        """The file with the candidates of each row, made by a job."""
        return self.ledger.with_name(self.ledger.name.removesuffix(LEDGER) + MATCHES)

    @property
    def groups(self) -> Path:
        """The file with the groups of the documents, made by a job."""
        return self.ledger.with_name(self.ledger.name.removesuffix(LEDGER) + GROUPS)

    @property
    def groups_ledger(self) -> Path:
        """The ledger of people's judgements of groups."""
        return self.ledger.with_name(self.ledger.name.removesuffix(LEDGER) + GROUPS_LEDGER)

    @property
    def own_folder(self) -> Path:
        """The folder of the review. Raises InputError if an index was opened directly."""
        if self.folder is None:
            raise InputError(
                f"{self.index} was opened as an index, without a review's folder: "
                "pass a folder to `linker serve`, and create a review there"
            )
        return self.folder

    @property
    def about(self) -> dict[str, Any]:
        """The content of project.json; empty if there is none."""
        return _about(self.folder) if self.folder else {}

    def describe(self, **changes: Any) -> None:
        """Change entries of project.json, all or none of them. Raises InputError if it cannot be written."""
        write_atomically(
            self.own_folder / ABOUT, orjson.dumps(self.about | changes, option=orjson.OPT_INDENT_2)
        )

    def adopt(self) -> None:
        """Mark the folder as belonging to a review if linker 0.2, which left no mark, made it. Raises InputError."""
        if self.folder and not ownership.is_marked(self.folder) and ownership.has_our_form(self.about):
            ownership.mark(self.folder)

    def delete(self) -> None:
        """Delete the review's folder; the names of its uploads are in project.json.

        If it contains a file that linker did not write, deletes nothing and raises InputError, which names the file.
        """
        self.adopt()
        ownership.delete(self.own_folder, {str(name) for name in self.about.get("roles", {})})


class Workspace:
    """The directory that `linker serve DIR` opens: a folder of reviews, one review's folder, or an index."""

    def __init__(self, directory: Path) -> None:
        """Open `directory`, which may be new. Raises InputError if it cannot contain reviews."""
        self.directory = directory
        if directory.exists() and not directory.is_dir():
            raise InputError(f"{directory} is a file: name a folder for reviews, or an index")
        self._single = _single(directory)
        if self._single is None and not directory.exists():
            try:
                writing.make_folder(directory)
            except OSError as e:
                raise InputError(f"cannot make the folder {directory}: {e.strerror}") from e

    @property
    def single(self) -> Project | None:
        """The only review, if the directory is a review's folder or an index; else None."""
        return self._single

    @property
    def projects(self) -> list[Project]:
        """The reviews, and the indexes in the folder, by name."""
        if self._single:
            return [self._single]
        try:
            folders = [path for path in self.directory.iterdir() if path.is_dir() and path.name[0] != "."]
        except OSError as e:
            raise InputError(f"cannot read the folder {self.directory}: {e.strerror}") from e
        found = [_single(path) for path in folders]
        return sorted((p for p in found if p), key=lambda p: (p.name.casefold(), p.key))

    def project(self, key: str) -> Project:
        """Return the review with this key. Raises InputError if there is none; no key leads out of the folder."""
        for project in self.projects:
            if project.key == key:
                return project
        raise InputError(f"there is no review {key!r} in {self.directory}")

    def create(self, name: str) -> Project:
        """Make a review's folder. Raises InputError if the name is empty, too long or taken."""
        if self._single:
            raise InputError(f"{self.directory} is a single review: name another folder to make more")
        name = " ".join(name.split())
        if not name or len(name) > MAX_NAME or not name.isprintable():
            text = f"a review's name must have 1 to {MAX_NAME} printable characters: choose another one"
            raise InputError(Reason(text, "bad-name", most=MAX_NAME))
        folder = self.directory / key_of(name)
        taken = InputError(f"there is already a review or folder like {name!r}: choose another name")
        if os.path.lexists(folder):
            raise taken
        about = {"name": name, "created": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            # The folder appears under its name once it is completely on disk. Only its owner can read it.
            building = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{folder.name}-", dir=self.directory))
            try:
                ownership.mark(building)
                (building / UPLOADS).mkdir(0o700)
                Project("", name, building, building, building).describe(**about)
                building.rename(folder)
            except BaseException:
                ownership.delete(building, ())
                raise
            writing.sync(self.directory)
        except OSError as e:
            if e.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise taken from None
            raise InputError(f"cannot make the folder {folder}: {e.strerror}") from e
        return _of_folder(folder)


def key_of(name: str) -> str:
    """Return a folder name for a review's name: lower-case Latin letters, digits and hyphens, never empty."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    key = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-")
    if key:
        return key
    return "review-" + "-".join(f"{ord(c):x}" for c in name if not c.isspace())[:40].strip("-")


def _key(path: Path) -> str:
    """Return a folder's name for use in URLs: its own or, if that has other characters, one derived from it."""
    name = path.resolve().name
    return (
        name
        if _KEY.fullmatch(name)
        else f"{key_of(name)[:40]}-{zlib.crc32(name.encode(errors='replace')):08x}"
    )


def _single(directory: Path) -> Project | None:
    """Return the review in a directory (an index, or a folder that linker made for a review), or None."""
    try:
        if is_index(directory):
            # The ledger of an index on a cluster is in the working directory.
            home = Path() if Address.of(directory) else directory.parent
            ledger = home / f"{directory.name}.{LEDGER}"
            return Project(_key(directory), directory.resolve().name, directory, ledger)
        if _is_review(directory):
            return _of_folder(directory)
    except OSError as e:
        return _of_folder(directory, f"cannot read {directory}: {e.strerror}")
    return None


def _is_review(folder: Path) -> bool:
    """Return whether a folder has our mark or (linker 0.2 left none) our project.json or ledger."""
    if ownership.is_marked(folder) or ownership.is_ledger(folder / LEDGER):
        return True
    with contextlib.suppress(InputError):
        return ownership.has_our_form(_about(folder))
    return False


def _of_folder(folder: Path, problem: str = "") -> Project:
    name = None
    try:
        name = None if problem else _about(folder).get("name")
    except InputError as e:
        problem = reason_of(e)
    name = name if isinstance(name, str) and name else folder.resolve().name
    return Project(_key(folder), name, folder / INDEX, folder / LEDGER, folder, problem)


def _about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    try:
        about = read_json(path) if os.path.lexists(path) else {}
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e
    if not isinstance(about, dict):
        raise InputError(f"{path} is not a JSON object: delete it to keep the review without its name")
    for name, kind in _FORM.items():
        if not isinstance(about.get(name, kind()), kind):
            form = "list" if kind is list else "object"
            raise InputError(
                f"{path}: {name!r} is not a JSON {form}: correct it, or restore the file from a backup"
            )
    return about
