"""Fetching a server for the tests once, through the user's own `mvn`, so any mirror configured there is used."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path


class NoServerError(Exception):
    """The server is not available here; the message gives the reason."""


def fetched(name: str, target: Path, variable: str, get: Callable[[Path], Path]) -> Path:
    """Return `target`, made from the folder that `get` leaves in a scratch folder; kept if a server is there.

    Processes wait for one another, and a partial folder never has that name. Raises NoServerError.
    """
    program = target / "bin" / name.lower()
    if program.exists():
        return target
    if shutil.which("mvn") is None:
        raise NoServerError(
            f"no mvn to fetch {name} with: install Maven, or let {variable} name an unpacked one"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{name.lower()}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetching-") as scratch:
                Path(scratch).chmod(0o755)
                get(Path(scratch)).rename(target)
    return target


def maven(name: str, goal: Sequence[str], folder: Path, minutes: int) -> None:
    """Run a goal of Maven that copies archives into `folder`. Raises NoServerError."""
    # A separate repository, deleted afterwards: otherwise the archives would stay in ~/.m2 forever.
    command = ["mvn", "-B", "-q", *goal, f"-DoutputDirectory={folder}", f"-Dmaven.repo.local={folder / 'm2'}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60 * minutes, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise NoServerError(f"the download of {name} took more than {minutes} minutes") from None
    if done.returncode:
        raise NoServerError(f"the download of {name} failed: {done.stdout[-500:]}{done.stderr[-500:]}")


def check(archive: Path, sha256: str) -> None:
    """Raise NoServerError if an archive is absent or not the intended one."""
    if not archive.exists():
        raise NoServerError(f"{archive.name} is missing after the download")
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise NoServerError(f"{archive.name} has SHA-256 {found}, not {sha256}")
