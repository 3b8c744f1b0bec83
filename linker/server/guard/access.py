"""Access control for the page and the API: tokens, request rates, and sessions that can be ended."""

import contextlib
import hashlib
import hmac
import math
import os
import secrets
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Self

from linker.base.errors import InputError
from linker.base.files import nonempty_lines
from linker.server.guard.admission import RefusedError
from linker.server.guard.tokens import Principal, Tokens, digest_of, write_secret

MOST = 10_000  # maximum number of clients remembered; the least recently seen is forgotten first
LIFETIME = 30 * 24 * 3600  # how many seconds a session is valid
# wrong tokens allowed (per second, in one burst): from one address, and from all addresses together
TRIES, TRIES_OF_ALL = (0.2, 20.0), (5.0, 200.0)
REMEMBERED = 10_000  # maximum number of remembered pairs of an address and a correct token
ENDING = ".sessions"  # suffix of the file with the session secret, next to the token file


class Rates:
    """Rate limits: one bucket per name, refilled by `rate` units per second up to `burst`; rate 0 means no limit."""

    def __init__(
        self, rate: float, burst: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst or max(1.0, 2 * rate), clock
        # by name: the units left in the bucket, and the time at which they were counted
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Take a unit from a bucket and return 0; if it is empty, return the whole seconds until it has a unit."""
        if not self._rate:
            return 0
        now = self._clock()
        left, then = self._buckets.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        passes = left >= 1
        self._buckets[name] = (left - 1 if passes else left, now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return 0 if passes else math.ceil((1 - left) / self._rate)

    def give_back(self, name: str) -> None:
        """Put back the unit that `wait` took from a bucket."""
        if name in self._buckets:
            left, then = self._buckets[name]
            self._buckets[name] = (left + 1, then)


class Access:
    """The tokens of a file, and the sessions of users who signed in with them; without a file everybody is admitted.

    The secret that signs sessions is random, so that nobody can guess a token from a cookie. It is in a file next to
    the token file, together with the signed-out sessions, so that a restart neither ends a session nor revives one.
    """

    def __init__(self, tokens: Tokens | None = None, file: Path | None = None) -> None:
        """Admit users who have one of `tokens`. The secret is in `file`, or only in memory if it cannot be written."""
        self.tokens, self._file = tokens, file
        self._path: Path | None = None
        self._page = False
        self._key = secrets.token_bytes(32) if tokens else b"linker: everybody is let in"
        self._expiries: dict[str, int] = {}  # by id of a signed-out session: a time by which it has expired
        self._lock = threading.Lock()
        self._one, self._all = Rates(*TRIES), Rates(*TRIES_OF_ALL)
        self._known_pairs: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        if file is not None:
            self._load(file)

    @classmethod
    def of(cls, token_file: Path | None, *, page: bool) -> Self:
        """Return the access control for `token_file`, which admits everybody if it is None.

        If `page`, a token must have the scope admin. Raises InputError if the file is unreadable or invalid.
        """
        if token_file is None:
            return cls()
        made = cls(_read(token_file, page), token_file.with_name(token_file.name + ENDING) if page else None)
        made._path, made._page = token_file, page
        return made

    @property
    def survives(self) -> bool:
        """Whether sessions survive a restart."""
        return self._file is not None

    def read_again(self) -> Tokens | None:
        """Return the tokens currently in the file. Raises InputError if it is unreadable or invalid."""
        return self.tokens if self._path is None else _read(self._path, self._page)

    def principal(self, token: str, address: str) -> Principal | None:
        """Return the token's owner, or None if it is unknown. Raises RefusedError after too many wrong tokens.

        A token that `address` has used before is always accepted, so that one client's wrong tokens lock nobody out.
        """
        digest = digest_of(token)
        found = self.tokens.holder(digest) if self.tokens else None
        with self._lock:
            if found is not None and (address, digest) in self._known_pairs:
                self._known_pairs.move_to_end((address, digest))
                return found
            if wait := self._one.wait(address) or self._all.wait(""):
                raise RefusedError("too-many-requests", retry=wait, seconds=wait)
            if found is not None:
                self._one.give_back(address)
                self._all.give_back("")
                self._known_pairs[address, digest] = None
                if len(self._known_pairs) > REMEMBERED:
                    self._known_pairs.popitem(last=False)
        return found

    def signed(self, id_: str, token: str = "") -> str:
        """Return a session's cookie: its id, its start, a keyed hash of the token that signed it in, a signature."""
        body = f"{id_}.{int(time.time())}.{self._mark(digest_of(token)) if token else 'out'}"
        return f"{body}.{self.mac(body)}"

    def checked(self, cookie: str) -> tuple[str, bool] | None:
        """Return a cookie's session id and whether it is signed in; None if it is forged, expired or signed out."""
        body, _, signature = cookie.rpartition(".")
        parts = body.split(".")
        if len(parts) != 3 or not is_same(signature, self.mac(body)) or not parts[1].isdecimal():
            return None
        id_, began, mark = parts
        if not 0 <= time.time() - int(began) < LIFETIME or id_ in self._expiries:
            return None
        if self.tokens is None or mark == "out":
            return id_, self.tokens is None
        known = any(is_same(mark, self._mark(digest)) for digest in self.tokens.opening)
        return (id_, True) if known else None

    def end(self, id_: str) -> None:
        """End a session permanently, so that copies of its cookie are refused too."""
        with self._lock:
            self._expiries[id_] = int(time.time()) + LIFETIME
            if self._file is not None:
                with contextlib.suppress(OSError), self._file.open("a", encoding="ascii") as file:
                    # if the disk is full, the session is ended only until a restart
                    file.write(f"{id_} {self._expiries[id_]}\n")
                    file.flush()
                    os.fsync(file.fileno())

    def mac(self, text: str) -> str:
        """Return the HMAC-SHA256 of a string, in hexadecimal."""
        return hmac.new(self._key, text.encode(errors="replace"), hashlib.sha256).hexdigest()

    def _mark(self, digest: bytes) -> str:
        return self.mac(f"token {digest.hex()}")[:16]

    def _load(self, file: Path) -> None:
        try:
            if not file.exists():
                write_secret(file, self._key.hex())
            mode = stat.S_IMODE(file.stat().st_mode)
            key, *ended = nonempty_lines(file)
            self._key = bytes.fromhex(key)
            self._expiries = {id_: int(until) for id_, until in (line.split() for line in ended)}
        except OSError:  # the token file may be in a folder where only a service manager can write
            self._file = None
            return
        except ValueError:
            raise InputError(f"{file} is damaged: delete it (everybody must then sign in again)") from None
        if mode & 0o077:
            raise InputError(f"{file} can be read by others (mode {mode:03o}): run `chmod 600 {file}`")
        self._expiries = {id_: until for id_, until in self._expiries.items() if until > time.time()}


def is_same(given: str, expected: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _read(path: Path, page: bool) -> Tokens:
    tokens = Tokens.read(path)
    if page and not tokens.opening:
        raise InputError(f"{path} contains no token with the scope admin, which the page requires: add one")
    return tokens
