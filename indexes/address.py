"""Addresses of indexes on a cluster, usable wherever a directory is: elastic+https://HOST:PORT/NAME.

`opensearch+https://HOST:PORT/NAME` is an index on OpenSearch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from indexes.errors import IndexesError

# In a `Path`, the two slashes of an address become one.
_ADDRESS = re.compile(r"(?:elastic|opensearch)\+(https?):/{1,2}([^/]+)/+([^/]+)/*", re.IGNORECASE)
_PREFIX = re.compile(r"(elastic|opensearch)\+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """An index on a cluster: the addresses of its nodes, its name there, and the kind of server."""

    urls: tuple[str, ...]
    name: str
    server: str = "elastic"

    @classmethod
    def of(cls, given: str | Path) -> Address | None:
        """Return the address that is given in place of a directory; None if it is a directory.

        Several nodes are separated by commas: elastic+https://es1:9200,es2:9200/NAME. Raises IndexesError if it
        cannot be parsed; the message never shows a password.
        """
        text = str(given)
        prefix = _PREFIX.match(text)
        if prefix is None:
            return None
        server = prefix[1].lower()
        if "@" in text:
            raise IndexesError(
                f"the address of {text.rpartition('@')[2]!r} contains a user or password, which would be shown: "
                f"put them into LINKER_{server.upper()}_USER and LINKER_{server.upper()}_PASSWORD"
            )
        parts = _ADDRESS.fullmatch(text)
        if parts is None:
            raise IndexesError(f"cannot use the address {text!r}: write {server}+http(s)://HOST:PORT/NAME")
        scheme, hosts, name = parts.groups()
        return cls(tuple(f"{scheme.lower()}://{host}" for host in hosts.split(",")), name, server)

    def __str__(self) -> str:
        scheme, _, first = self.urls[0].partition("://")
        others = [url.partition("://")[2] for url in self.urls[1:]]
        return f"{self.server}+{scheme}://{','.join([first, *others])}/{self.name}"


def shown(directory: str | Path) -> str:
    """Return an index's name for messages: the path of its directory, or its address."""
    return str(Address.of(directory) or directory)
