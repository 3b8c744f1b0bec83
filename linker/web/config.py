"""What decides who may use the page, and what it serves."""

from __future__ import annotations

import ipaddress
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from linker.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """A folder and who may use the page that shows it.

    `hosts`: names in addresses that are answered, beside those of this machine. `token`: who signs in with it is let
    in; empty: everybody who reaches the port. `proxy_header`: the header in which a proxy, which has signed people in,
    names them. `any_address`: also answer requests to IP addresses, which need no name and so cannot be rebound (DNS).
    """

    directory: Path
    hosts: tuple[str, ...] = ()
    token: str = ""
    proxy_header: str = ""
    any_address: bool = False
    max_form: int = 1 << 20  # bytes of a form
    max_upload: int = 2 << 30  # bytes of an upload

    @classmethod
    def of(
        cls,
        directory: Path,
        host: str = LOOPBACK[0],
        *,
        token_file: Path | None = None,
        proxy_header: str = "",
        allowed: tuple[str, ...] = (),
    ) -> Self:
        """Return the configuration of a server that listens on `host`.

        Raises InputError where it would be open to a network without a token or a proxy that signs people in.
        """
        if not is_loopback(host) and token_file is None and not proxy_header:
            raise InputError(
                f"--host {host} would open the page to everyone who can reach this machine: add --token-file FILE, "
                "or --proxy-header NAME behind a proxy that signs people in"
            )
        if token_file is not None and proxy_header:
            raise InputError("give --token-file or --proxy-header, not both: one of them signs people in")
        if proxy_header and not all(c.isascii() and (c.isalnum() or c == "-") for c in proxy_header):
            raise InputError(
                f"--proxy-header {proxy_header}: not the name of a header, such as X-Forwarded-User"
            )
        token = read_token(token_file) if token_file is not None else ""
        names = tuple(name.lower() for name in (host, *allowed))
        return cls(directory, names, token, proxy_header.lower(), any_address=not is_loopback(host))

    def answers_to(self, host: str) -> bool:
        """Whether requests to this name or address are answered; other names may be rebound to us by an attacker."""
        host = host.strip("[]").lower()
        return host in LOOPBACK or host in self.hosts or (self.any_address and _is_address(host))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def read_token(path: Path) -> str:
    """Return the token in a file, which is made with a new one where there is none, readable by its owner alone.

    Raises InputError where it cannot be read or written, or the token is too short to be safe.
    """
    try:
        if not path.exists():
            with open(path, "x", opener=_private, encoding="ascii") as file:
                file.write(secrets.token_urlsafe(24) + "\n")
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot use the token file {path}: {getattr(e, 'strerror', e)}") from e
    if len(token) < SHORTEST_TOKEN:
        raise InputError(
            f"{path}: a token of fewer than {SHORTEST_TOKEN} characters can be guessed: "
            "delete the file, and a new one is made"
        )
    return token


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
