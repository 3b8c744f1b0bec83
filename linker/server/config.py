"""The configuration that the page and the API share: what a server serves, to whom, and within which limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from indexes.cores import cores
from indexes.sharded import is_index
from linker.base.errors import InputError
from linker.review.project import Workspace
from linker.server.api.logs import LogFormat
from linker.server.guard.access import Access
from linker.server.guard.admission import LOOPBACK, Hosts, is_loopback


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum values for one request, one client and all clients together; sizes in bytes, times in seconds."""

    body: int = 16 << 20
    bulk: int = 4 << 30  # a body of `documents:bulk`, which is never held as a whole
    form: int = 1 << 20  # the body of a submitted form
    upload: int = 2 << 30  # a body of files for a review
    seconds: float = 60.0  # from a request to the end of its response, unless its body is streamed
    idle: float = 20.0  # between two chunks of a body, or for a client to read one chunk of a response
    rate: float = 0.0  # requests per second per token or address; 0: unlimited
    threads: int = max(4, 2 * cores())  # concurrent searches
    waiting: int = 256  # searches or changes of one client that wait
    jobs: int = 2  # concurrent jobs, in each worker
    jobs_waiting: int = 16  # waiting jobs, in each worker
    job_seconds: float = 3600.0  # duration of a job
    job_kept: float = 3600.0  # time for which a job's result is kept


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """The served directories, and who may access them.

    `hosts`: the host names to which the server answers. `access`: who is admitted. `proxy_header`: the header in which
    a proxy names the signed-in user. `jobs_folder`: where workers share job states; None if there is one process.
    """

    directories: tuple[Path, ...]
    hosts: Hosts = field(default_factory=Hosts)
    access: Access = field(default_factory=Access)
    proxy_header: str = ""
    limits: Limits = field(default_factory=Limits)
    log_format: LogFormat = "text"
    jobs_folder: Path | None = None

    @classmethod
    def of(
        cls,
        directories: Path | Sequence[Path],
        host: str = LOOPBACK[0],
        *,
        token_file: Path | None = None,
        proxy_header: str = "",
        allowed: tuple[str, ...] = (),
        limits: Limits | None = None,
        log_format: LogFormat = "text",
        page: bool = True,
    ) -> Self:
        """Return the configuration of a server that listens on `host`; if `page`, a token must have the scope admin.

        Raises InputError if it would be open to a network without a token or a proxy that signs people in.
        """
        _check_access(host, token_file, proxy_header)
        given = (directories,) if isinstance(directories, Path) else tuple(directories)
        return cls(
            given, Hosts.of(host, allowed), Access.of(token_file, page=page), proxy_header.lower(),
            limits or Limits(), log_format,
        )  # fmt: skip

    @property
    def folder(self) -> Path | None:
        """The folder in which indexes can be created; None if the server serves indexes or a review's folder."""
        if len(self.directories) != 1 or is_index(self.directories[0]):
            return None
        return None if Workspace(self.directories[0]).single else self.directories[0]

    def indexes(self) -> Mapping[str, Path]:
        """Return the directory of each index by its name in requests, sorted: looked up each time, as it may change.

        Raises InputError if there is none and no page to make one, or if two have the same name.
        """
        found: dict[str, Path] = {}
        for directory in self.directories:
            for name, path in _indexes_of(directory):
                if found.setdefault(name, path) != path:
                    raise InputError(
                        f"two indexes are named {name!r}: {found[name]} and {path}: rename a directory"
                    )
        # Several workers, which share a folder of jobs, serve no page.
        if not found and (self.jobs_folder is not None or not has_page(self.directories)):
            listed = ", ".join(map(str, self.directories))
            raise InputError(f"there is no index in {listed}: build one with `linker index build`")
        return dict(sorted(found.items()))


def has_page(directories: Sequence[Path]) -> bool:
    """Return whether the page is served along with the API: for one directory, unless it is a folder of indexes."""
    return len(directories) == 1 and (
        is_index(directories[0]) or all(p.folder is not None for p in Workspace(directories[0]).projects)
    )


def _check_access(host: str, token_file: Path | None, proxy_header: str) -> None:
    """Raise InputError if a server on `host` would be open to a network, or if two sign-in methods are configured."""
    if not is_loopback(host) and token_file is None and not proxy_header:
        raise InputError(
            f"--host {host} would open the page to everyone who can reach this machine: add --token-file FILE, "
            "or --proxy-header NAME behind a proxy that signs people in"
        )
    if token_file is not None and proxy_header:
        raise InputError("give --token-file or --proxy-header, not both: one of them signs people in")
    if proxy_header and not all(c.isascii() and (c.isalnum() or c == "-") for c in proxy_header):
        raise InputError(f"--proxy-header {proxy_header}: not the name of a header, such as X-Forwarded-User")


def _indexes_of(directory: Path) -> list[tuple[str, Path]]:
    """Return the name and directory of each index: the directory itself, or the indexes and reviews in it."""
    if is_index(directory):
        return [(directory.resolve().name, directory)]
    if not directory.is_dir():
        raise InputError(f"there is no directory {directory}: give an index, or a folder of indexes")
    return [
        (p.key if p.folder else p.index.resolve().name, p.index)
        for p in Workspace(directory).projects
        if p.ready
    ]
