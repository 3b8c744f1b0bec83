"""What the service serves, to whom, and how much of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from indexes.sharded import is_index
from linker.base.errors import InputError
from linker.review.project import Workspace
from linker.server.api import logs
from linker.server.page.config import check_access
from linker.server.page.hosts import LOOPBACK, Hosts


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request, one client and all of them together may take; sizes in bytes, times in seconds."""

    body: int = 16 << 20
    bulk: int = 4 << 30  # of a body of `documents:bulk`, which is never held as a whole
    seconds: float = 60.0  # until the answer, unless the body is streamed
    idle: float = 20.0  # between two pieces of a body, or of an answer that nobody fetches
    rate: float = 0.0  # requests per second of one token or address; 0: any number
    threads: int = max(4, 2 * (os.cpu_count() or 1))  # searches at the same time
    waiting: int = 256  # searches that wait for a thread
    jobs: int = 2  # jobs that run at the same time, in each worker
    jobs_waiting: int = 16  # jobs that wait for their turn, in each worker
    job_seconds: float = 3600.0  # until a job is ended
    job_kept: float = 3600.0  # until an ended job is forgotten


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """Directories whose indexes are served, and who may ask.

    `hosts`: the names that are answered. `token_file`: see `linker.server.page.tokens`; None: everybody who reaches the
    port may do everything. `proxy_header`: the header in which a proxy names who has signed in.
    """

    directories: tuple[Path, ...]
    hosts: Hosts = field(default_factory=Hosts)
    token_file: Path | None = None
    proxy_header: str = ""
    limits: Limits = field(default_factory=Limits)
    log_format: logs.LogFormat = "text"
    jobs_folder: Path | None = None  # where workers share the state of jobs; None: there is one process

    @classmethod
    def of(
        cls,
        directories: Sequence[Path],
        host: str = LOOPBACK[0],
        *,
        token_file: Path | None = None,
        proxy_header: str = "",
        allowed: tuple[str, ...] = (),
        limits: Limits | None = None,
        log_format: logs.LogFormat = "text",
    ) -> Self:
        """Return the configuration of a service that listens on `host`.

        Raises InputError where it would be open to a network without tokens or a proxy that signs people in.
        """
        check_access(host, token_file, proxy_header)
        hosts = Hosts.of(host, allowed)
        return cls(
            tuple(directories), hosts, token_file, proxy_header.lower(), limits or Limits(), log_format
        )

    def indexes(self) -> Mapping[str, Path]:
        """Return the directory of each index by its name on the wire, sorted: looked up now, so that it may change.

        Raises InputError where there is none, or two have the same name.
        """
        found: dict[str, Path] = {}
        for directory in self.directories:
            for name, path in _indexes_of(directory):
                if found.setdefault(name, path) != path:
                    raise InputError(
                        f"two indexes are named {name!r}: {found[name]} and {path}: rename a directory"
                    )
        if not found:
            listed = ", ".join(map(str, self.directories))
            raise InputError(f"there is no index in {listed}: build one with `linker index build`")
        return dict(sorted(found.items()))


def _indexes_of(directory: Path) -> list[tuple[str, Path]]:
    """Return name and directory of each index: the directory itself, or those in it, also of reviews."""
    if is_index(directory):
        return [(directory.resolve().name, directory)]
    if not directory.is_dir():
        raise InputError(f"there is no directory {directory}: give an index, or a folder of indexes")
    return [
        (p.key if p.folder else p.index.resolve().name, p.index)
        for p in Workspace(directory).projects
        if p.ready
    ]
