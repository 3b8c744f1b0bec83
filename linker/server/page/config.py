"""What decides who may use the page, and what it serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from linker.base.errors import InputError
from linker.server.page.access import Access
from linker.server.page.hosts import LOOPBACK, Hosts, is_loopback


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """A folder and who may use the page that shows it.

    `hosts`: names in addresses that are answered, beside those of this machine. `access`: who is let in.
    `proxy_header`: the header in which a proxy, which has signed people in, names them. `any_address`: also answer
    requests to IP addresses, which need no name and so cannot be rebound (DNS).
    """

    directory: Path
    hosts: tuple[str, ...] = ()
    access: Access = field(default_factory=Access)
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
        check_access(host, token_file, proxy_header)
        access, hosts = Access.of(token_file, page=True), Hosts.of(host, allowed)
        return cls(directory, hosts.names, access, proxy_header.lower(), hosts.any_address)

    @property
    def answered(self) -> Hosts:
        """The names and addresses to which requests are answered."""
        return Hosts(self.hosts, self.any_address)


def check_access(host: str, token_file: Path | None, proxy_header: str) -> None:
    """Raise InputError where a server on `host` would be open to a network, or two ways sign people in."""
    if not is_loopback(host) and token_file is None and not proxy_header:
        raise InputError(
            f"--host {host} would open the page to everyone who can reach this machine: add --token-file FILE, "
            "or --proxy-header NAME behind a proxy that signs people in"
        )
    if token_file is not None and proxy_header:
        raise InputError("give --token-file or --proxy-header, not both: one of them signs people in")
    if proxy_header and not all(c.isascii() and (c.isalnum() or c == "-") for c in proxy_header):
        raise InputError(f"--proxy-header {proxy_header}: not the name of a header, such as X-Forwarded-User")
