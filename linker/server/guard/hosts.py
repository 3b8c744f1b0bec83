"""The names to which a server answers, since an attacker may point other names at it (DNS rebinding)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names to which a server answers, in lower case, in addition to this machine's own.

    `any_address`: also answer to every IP address, since an address is not a name that could be rebound.
    """

    names: tuple[str, ...] = ()
    any_address: bool = False

    @classmethod
    def of(cls, host: str, allowed: Iterable[str] = ()) -> Self:
        """Return the names of a server that listens on `host` and also answers to the `allowed` names."""
        return cls(tuple(name.lower() for name in (host, *allowed)), any_address=not is_loopback(host))

    def answers_to(self, name: str) -> bool:
        """Return whether requests to this name or address, without a port, are answered."""
        name = name.strip("[]").lower()
        return name in LOOPBACK or name in self.names or (self.any_address and is_address(name))

    def is_own_origin(self, origin: str, host: str, *, proxied: bool = False) -> bool:
        """Return whether the header Origin names this server; a proxy may have changed `host`, the header Host."""
        try:
            parts = urlsplit(origin)
        except ValueError:  # an unpaired bracket
            return False
        return parts.netloc == host or (proxied and (parts.hostname or "") in self.names)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    """Return whether `host` is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def without_port(host: str) -> str:
    """Return the name in a header Host, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
