"""Access tokens for the page and the API, with scopes, read from a file.

Each line is `TOKEN`, `TOKEN SCOPES` or `TOKEN SCOPES NAME`. SCOPES are joined by commas: `read` (search), `write`
(change documents), `admin` (everything; the default for a TOKEN without SCOPES). NAME appears in logs and metrics
instead of the token. A # at the beginning of a line is a comment.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from linker.base.errors import InputError
from linker.base.files import nonempty_lines

SHORTEST_TOKEN = 16  # minimum length in characters
Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated client: its name for logs, and its allowed scopes."""

    name: str
    scopes: frozenset[str] = frozenset(SCOPES)

    def may(self, scope: Scope) -> bool:
        """Return whether a scope is allowed; `admin` allows all."""
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True)
class Tokens:
    """The known tokens, as SHA-256 digests; those with the scope `admin` open the page."""

    known: tuple[tuple[bytes, Principal], ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the tokens in a file; if it does not exist, it is created with one new token that has all scopes.

        Raises InputError if the file cannot be read or created, others can read it, or a line is malformed.
        """
        try:
            if not path.exists():
                write_secret(path, secrets.token_urlsafe(24))
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError as e:
            raise InputError(f"cannot use the token file {path}: {e.strerror}") from e
        if mode & 0o027:
            raise InputError(
                f"{path} can be read or changed by others (mode {mode:03o}): run `chmod 600 {path}`"
            )
        lines = [line for line in nonempty_lines(path) if not line.startswith("#")]
        known = tuple(_entry(line, number, path) for number, line in enumerate(lines, start=1))
        if not known:
            raise InputError(f"{path} contains no token: delete the file, and linker will create a new one")
        if len({digest for digest, _ in known}) < len(known):
            raise InputError(f"{path} contains a token twice: remove one of the lines")
        return cls(known)

    def holder(self, digest: bytes) -> Principal | None:
        """Return the owner of the token with this digest, in a time that does not depend on how much of it is right."""
        found = None
        for known, principal in self.known:
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    @property
    def opening(self) -> tuple[bytes, ...]:
        """The digests of the tokens that sign people in to the page."""
        return tuple(known for known, principal in self.known if principal.may("admin"))


def write_secret(path: Path, text: str) -> None:
    """Write a line into a new file that only its owner can read. Raises OSError, also if the file exists."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(descriptor)


def _entry(line: str, number: int, path: Path) -> tuple[bytes, Principal]:
    token, *rest = line.split()
    scopes = rest[0].split(",") if rest else list(SCOPES)
    name = rest[1] if len(rest) > 1 else f"token-{number}"
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"{path}: token {number} has fewer than {SHORTEST_TOKEN} characters: replace it with a longer one"
        )
    if wrong or len(rest) > 2 or not _NAME.fullmatch(name):
        raise InputError(
            f"{path}: token {number}: expected TOKEN, TOKEN SCOPES or TOKEN SCOPES NAME, with scopes from "
            f"{', '.join(SCOPES)} and a name of at most 64 letters, digits and ._-"
        )
    return digest_of(token), Principal(name, frozenset(scopes))


def digest_of(token: str) -> bytes:
    """Return the stored digest of a token."""
    return hashlib.sha256(token.encode(errors="replace")).digest()
