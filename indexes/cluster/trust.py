"""Which servers may receive our credentials: those that the user named, never one that only a manifest names.

The user names a server with LINKER_ELASTIC_URL, with `--url` (in a program: `ElasticSettings`), or by confirming it
on the terminal. Servers named in the last two ways are stored in a file of trusted hosts outside every index.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from indexes.errors import IndexesError, UntrustedHostError

URLS = "LINKER_ELASTIC_URL"
PRIVATE = "LINKER_ELASTIC_PRIVATE_NETWORK"
FILE = "LINKER_TRUSTED_HOSTS"
# Strict, so that our reading of an address cannot differ from the client's.
ADDRESS = re.compile(
    r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:/[a-z0-9._~/-]*)?", re.IGNORECASE
)
PORTS = {"http": "80", "https": "443"}

# function that asks the user to trust hosts; None if nobody can answer
confirm: Callable[[str], bool] | None = None


def origin(url: str) -> str:
    """Return an address as scheme://host:port in lower case. Raises IndexesError, without showing a password."""
    if "@" in url:
        raise IndexesError(
            f"the address of {url.rpartition('@')[2]!r} contains a user or password, which would be stored: "
            "put them into LINKER_ELASTIC_USER and LINKER_ELASTIC_PASSWORD"
        )
    parts = ADDRESS.fullmatch(url)
    if parts is None or not _is_possible(parts[2], parts[3]):
        raise IndexesError(f"cannot use the address {url.partition('?')[0]!r}: write http(s)://HOST:PORT")
    scheme, host, port = (part and part.lower() for part in parts.groups())
    return f"{scheme}://{host}:{int(port or PORTS[scheme])}"


def _is_possible(host: str, port: str | None) -> bool:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return False
    return 0 < int(port or 1) < 1 << 16


def path() -> Path:
    """Return the file of trusted hosts, LINKER_TRUSTED_HOSTS. Raises IndexesError without a home directory."""
    if override := os.environ.get(FILE):
        return Path(override)
    if (config := os.environ.get("XDG_CONFIG_HOME", "")).startswith("/"):
        return Path(config, "linker", "trusted-hosts")
    try:
        return Path.home() / ".config" / "linker" / "trusted-hosts"
    except RuntimeError:
        raise IndexesError(f"there is no home directory: name a file of trusted hosts in {FILE}") from None


def trusted() -> set[str]:
    """Return the origins in LINKER_ELASTIC_URL and the file of trusted hosts. Raises IndexesError if one is invalid."""
    return {*_origins(URLS, os.environ.get(URLS, "").split(",")), *_origins(str(path()), _lines(path()))}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as e:
        raise IndexesError(f"cannot read the trusted hosts in {file}: {e}") from None


def _origins(source: str, urls: Sequence[str]) -> Iterator[str]:
    for number, url in enumerate(map(str.strip, urls), start=1):
        if url and not url.startswith("#"):
            try:
                yield origin(url)
            except IndexesError as e:
                raise IndexesError(f"{source}, entry {number}: {e}") from None


def remember(urls: Sequence[str]) -> None:
    """Add new addresses to the file of trusted hosts. Raises IndexesError if the file cannot be read or written."""
    known = trusted()
    new = [o for o in dict.fromkeys(map(origin, urls)) if o not in known]
    if not new:
        return
    file = path()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # One write in append mode, so that concurrent processes lose no line.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, "".join(f"{o}\n" for o in new).encode())
        finally:
            os.close(descriptor)
    except OSError as e:
        raise IndexesError(
            f"cannot write the trusted hosts to {file} ({e.strerror}): set {URLS}={','.join(new)} instead"
        ) from None


def check(urls: Sequence[str], *, named: bool) -> None:
    """Raise UntrustedHostError unless our credentials may go to all of the addresses.

    `named` means that the user gave these addresses; otherwise they must be trusted, or the user is asked. Plain http
    is allowed only where nobody else can listen: on loopback, and to addresses that the user declares to be in a
    private network (LINKER_ELASTIC_PRIVATE_NETWORK). Raises IndexesError if an address is invalid.
    """
    origins = [origin(url) for url in urls]
    private = set(_origins(PRIVATE, os.environ.get(PRIVATE, "").split(",")))
    if exposed := [o for o in origins if o.startswith("http:") and not (_is_loopback(o) or o in private)]:
        raise UntrustedHostError(
            f"credentials are not sent over plain http, which others can read, to {', '.join(exposed)}: use https, "
            f"or name it in {PRIVATE} if nobody else can listen in that network"
        )
    known = set(origins) if named else trusted()
    unknown = sorted(set(origins) - known)
    if not unknown:
        return
    if confirm is None or not confirm(", ".join(unknown)):
        raise UntrustedHostError(
            f"the index names {', '.join(unknown)}, which you have not named: no credentials are sent there. "
            f"If you trust it, set {URLS}={','.join(unknown)}, or add it as a line to {path()}"
        )
    remember(unknown)


def _is_loopback(origin: str) -> bool:
    host = origin.partition("://")[2].rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
