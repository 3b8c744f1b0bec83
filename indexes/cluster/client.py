"""The connection to a server: addresses, credentials from the environment, and the translation of errors.

All this also applies to OpenSearch, whose client is in `opensearch`.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexes.address import Address
from indexes.cluster import trust as elastic_trust
from indexes.errors import importing
from indexes.interface import BackendUnavailableError, IndexesError

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

PRODUCTS = {"elastic": "Elasticsearch", "opensearch": "OpenSearch"}
SEARCH_SECONDS = 10.0
WRITE_SECONDS = 60.0
PING_SECONDS = 1.5
BUSY = (429, 502, 503, 504)  # statuses after which the server may answer later
FULL = "a disk of the cluster is full: free space on it, and writes then resume"
ALONE = "the node that answered is cut off from the others: repair the network between them, or name the others, too"
BLOCKED = "index write (api)"  # in the server's reason for refusing writes while an index is rebuilt
# Remedies for the cluster's operator, by the nodes' messages.
REMEDIES = {
    "disk usage exceeded": FULL,
    "No space left": FULL,
    BLOCKED: "the index is being rebuilt, and accepts changes after `linker index rebuild` has ended; if that was "
    "interrupted, run it again",
    "master": ALONE,
    "cluster_manager": ALONE,
    "cluster-manager": ALONE,
}
REMEDY = "try again, and see /_cluster/health on the server"


class PassingError(BackendUnavailableError):
    """A temporary failure: the server was busy or failed, or a shard has no copy until a replica takes its place."""


@dataclass(frozen=True, slots=True)
class ElasticSettings:
    """Location and layout of an index, without secrets; `index` is the alias that is searched.

    `named` means that the caller gave the addresses, so that credentials may go there without confirmation;
    `stateless`, that there is no directory next to the index; `server` is a key of PRODUCTS. Raises IndexesError if
    an address or a number is invalid.
    """

    urls: tuple[str, ...]
    index: str
    shards: int = 1
    replicas: int = 0
    named: bool = field(default=True, compare=False)
    stateless: bool = field(default=False, compare=False)
    server: str = "elastic"

    def __post_init__(self) -> None:
        if not self.urls:
            raise IndexesError(f"no address for {self.product}: give one as `url`, such as http://HOST:9200")
        for url in self.urls:
            elastic_trust.origin(url)
        if self.shards < 1 or self.replicas < 0:
            raise IndexesError(
                f"{self.shards} shards and {self.replicas} replicas: use at least 1 shard and 0 replicas"
            )

    @classmethod
    def of(cls, address: Address, shards: int = 1, replicas: int = 0) -> ElasticSettings:
        """Return the settings of an index without a directory, whose address the user gave."""
        return cls(address.urls, address.name, shards, replicas, stateless=True, server=address.server)

    @property
    def product(self) -> str:
        """The name of the server for messages."""
        return PRODUCTS[self.server]

    @property
    def prefix(self) -> str:
        """The prefix of the environment variables' names."""
        return f"LINKER_{self.server.upper()}_"

    @property
    def where(self) -> str:
        """The server and its addresses for messages."""
        return f"{self.product} at {', '.join(self.urls)}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {
            "urls": list(self.urls),
            "index": self.index,
            "shards": self.shards,
            "replicas": self.replicas,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ElasticSettings:
        """Return the settings in a manifest; it may be untrusted, so its addresses are not `named`."""
        return cls(tuple(values["urls"]), values["index"], values["shards"], values["replicas"], named=False)


def connect(settings: ElasticSettings, timeout: float | None = None) -> Elasticsearch:
    """Return a client whose searches time out after `timeout` seconds (default: LINKER_ELASTIC_TIMEOUT, or 10).

    Nothing is sent yet. The time is divided among the addresses, so that a dead node leaves time for the next.
    Redirects are not followed, and nodes are not discovered. Raises MissingExtraError if the client library is
    missing, UntrustedHostError if credentials must not go to an address, IndexesError if they are invalid.
    """
    with importing("the Elasticsearch backend", "elastic"):
        from elasticsearch import Elasticsearch

        from indexes.cluster.nodes import AnsweringFirst, RememberedNode
    for name in ("elasticsearch", "elastic_transport"):
        logging.getLogger(name).addHandler(logging.NullHandler())  # linker reports failures itself
    seconds = seconds_of(settings) if timeout is None else timeout
    urls, header, certificates = settings.urls, authorization(settings), authority(settings)
    # The client refuses certificates for plain http.
    secure = all(url.lower().startswith("https:") for url in urls)
    options: dict[str, Any] = {"ca_certs": certificates} if certificates and secure else {}
    if header:
        elastic_trust.check(urls, named=settings.named)
    return Elasticsearch(
        list(dict.fromkeys(urls)),
        headers={"authorization": header} if header else {},
        sniff_on_start=False,
        sniff_before_requests=False,
        sniff_on_node_failure=False,
        request_timeout=seconds / len(urls),
        # With a single address, one retry reopens a connection closed while idle.
        max_retries=max(1, len(urls) - 1),
        node_class=RememberedNode,
        node_selector_class=AnsweringFirst,
        retry_on_timeout=len(urls) > 1,
        **options,
    )


def seconds_of(settings: ElasticSettings) -> float:
    """Return a search's time limit in seconds. Raises IndexesError if the environment variable is not positive."""
    name = f"{settings.prefix}TIMEOUT"
    text = os.environ.get(name, "")
    try:
        seconds = float(text) if text else SEARCH_SECONDS
    except ValueError:
        seconds = -1
    if seconds <= 0:
        raise IndexesError(f"{name} is {text!r}: give a positive number of seconds")
    return seconds


def remember(settings: ElasticSettings) -> None:
    """Store the addresses that the caller named as trusted, for later processes. Raises IndexesError."""
    if settings.named and authorization(settings):
        elastic_trust.remember(settings.urls)


def authorization(settings: ElasticSettings) -> str:
    """Return the Authorization header; empty without credentials. Raises IndexesError if they are invalid."""
    prefix = settings.prefix
    key, user, password = (_secret(f"{prefix}{name}") for name in ("API_KEY", "USER", "PASSWORD"))
    if key and settings.server != "elastic":
        raise IndexesError(
            f"{prefix}API_KEY is set, but {settings.product} accepts no API keys: use {_ways(settings)}"
        )
    if key and user:
        raise IndexesError(f"both {prefix}API_KEY and {prefix}USER are set: use one of them")
    if not re.fullmatch(r"[!-~]*", key):
        raise IndexesError(f"{prefix}API_KEY contains characters that no API key has: give its encoded form")
    if ":" in user:
        raise IndexesError(
            f"{prefix}USER contains a colon, which user names must not have: give the name alone"
        )
    if key:
        return f"ApiKey {key}"
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}" if user else ""


def _ways(settings: ElasticSettings) -> str:
    key = f"{settings.prefix}API_KEY, or " if settings.server == "elastic" else ""
    return f"{key}{settings.prefix}USER and {settings.prefix}PASSWORD"


def authority(settings: ElasticSettings) -> str | None:
    """Return the file of the certificate authority. Raises IndexesError if it does not exist."""
    file = os.environ.get(f"{settings.prefix}CA") or None
    if file and not Path(file).is_file():
        raise IndexesError(f"{settings.prefix}CA names a file that does not exist: {file}")
    return file


def _secret(variable: str) -> str:
    """Return the secret in the variable, or in the file that NAME_FILE names. Raises IndexesError if unreadable."""
    file = os.environ.get(f"{variable}_FILE")
    try:
        if file:
            return Path(file).read_text(encoding="utf-8").strip()
        return os.environb.get(variable.encode(), b"").decode()
    except OSError as e:
        raise IndexesError(f"cannot read the file that {variable}_FILE names: {e.strerror}") from None
    except UnicodeDecodeError:
        raise IndexesError(f"{variable}, or the file that {variable}_FILE names, is not UTF-8 text") from None


@contextlib.contextmanager
def elastic_errors(settings: ElasticSettings) -> Iterator[None]:
    """Turn the client's errors into BackendUnavailableError if they may be temporary, IndexesError if not."""
    from elasticsearch import ApiError, TransportError, UnsupportedProductError

    try:
        yield
    except UnsupportedProductError:
        raise not_the_product(settings) from None
    except ApiError as e:
        raise api_error(settings, e.status_code, reason_of(e.body)) from None
    except TransportError as e:
        raise no_answer(settings, type(e).__name__, str(e.message)) from None


def timed_out() -> type[Exception]:
    """Return the error of a request that a node did not answer in time."""
    from elasticsearch import ConnectionTimeout

    return ConnectionTimeout


def no_answer(settings: ElasticSettings, kind: str, said: str) -> BackendUnavailableError:
    """Return the error for a server that does not answer."""
    slow = f", or set {settings.prefix}TIMEOUT to more seconds" if kind == "ConnectionTimeout" else ""
    return BackendUnavailableError(
        f"{settings.where} does not answer ({kind}: {_short(said)}): check that it is running{slow}"
    )


def not_the_product(settings: ElasticSettings) -> BackendUnavailableError:
    """Return the error for a server that is not the product that its address names."""
    others = " or ".join(f"{key}+ for {name}" for key, name in PRODUCTS.items() if key != settings.server)
    return BackendUnavailableError(
        f"the server at {', '.join(settings.urls)} is not {settings.product}: begin its address with {others}"
        if settings.stateless
        else f"the server at {', '.join(settings.urls)} is not {settings.product}"
    )


def api_error(settings: ElasticSettings, status: int, reason: str) -> IndexesError:
    """Return the error for an HTTP status: BackendUnavailableError if the server is at fault, else IndexesError."""
    where, index = settings.where, settings.index
    if status in (401, 403) and "cluster_block" not in reason:
        return BackendUnavailableError(f"{where} refuses access ({status}): set {_ways(settings)}")
    if status == 400 and ("[index.knn" in reason or "[knn_vector]" in reason):
        return IndexesError(
            f"{where} has no k-NN plugin, which vectors require: install it, or build with `encoder` none"
        )
    if status == 404:
        remedy = "restore it with `linker index rebuild`, or build the index again"
        if settings.stateless:
            remedy = "build it with `linker index build CORPUS --out ADDRESS`"
        return BackendUnavailableError(f"{where} has no index {index!r}: {remedy}")
    if status in BUSY or status >= 500:
        return PassingError(f"{where} cannot answer now ({status}: {_short(reason)}): {remedy_of(reason)}")
    return IndexesError(f"{where} rejected a request ({status}: {_short(reason)})")


def remedy_of(reason: str) -> str:
    """Return the remedy for a reason that the server gave."""
    return next((remedy for said, remedy in REMEDIES.items() if said in reason), REMEDY)


def reason_of(body: object) -> str:
    """Return the innermost cause in the body of an error that the server sent."""
    error: Any = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping) and (shards := error.get("_shards")):
        failures = shards.get("failures") or [{}]
        error = (
            failures[0].get("reason")
            or f"{shards.get('successful')} of {shards.get('total')} shards answered"
        )
    while isinstance(error, Mapping) and (inner := (error.get("root_cause") or [error.get("caused_by")])[0]):
        error = inner
    return f"{error.get('type')}: {error.get('reason')}" if isinstance(error, Mapping) else str(error)


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"
