"""The connection to Elasticsearch: addresses, credentials from the environment, and its errors as ours."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from indexes.errors import importing
from indexes.interface import BackendUnavailableError, IndexesError

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

PREFIX = "LINKER_ELASTIC_"
SEARCH_SECONDS = 10.0
WRITE_SECONDS = 60.0
BUSY = (429, 502, 503, 504)  # the server may answer later


@dataclass(frozen=True, slots=True)
class ElasticSettings:
    """Where an index lives and how it is laid out; nothing secret. `index` is the alias that is searched."""

    urls: tuple[str, ...]
    index: str
    shards: int = 1
    replicas: int = 0

    def __post_init__(self) -> None:
        if not self.urls:
            raise IndexesError("no address of Elasticsearch: give --url http://HOST:9200")
        for url in self.urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise IndexesError(
                    f"cannot use the address {parts.hostname or url!r}: write http(s)://HOST:PORT"
                )
            if parts.username or parts.password:
                raise IndexesError(
                    f"the address of {parts.hostname} holds a user or password, which would be stored: "
                    f"put them into {PREFIX}USER and {PREFIX}PASSWORD"
                )
        if self.shards < 1 or self.replicas < 0:
            raise IndexesError(f"{self.shards} shards, {self.replicas} replicas: at least 1 and 0 are needed")

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
        """Read what `to_json` wrote."""
        return cls(tuple(values["urls"]), values["index"], values["shards"], values["replicas"])


def connect(urls: Sequence[str], timeout: float | None = None) -> Elasticsearch:
    """Return a client whose searches end after `timeout` seconds (default: LINKER_ELASTIC_TIMEOUT, or 10).

    Nothing is sent yet. The time is divided among the addresses, so that a dead node leaves some for the next.
    Raises MissingExtraError, IndexesError for credentials that cannot be read.
    """
    with importing("the Elasticsearch backend", "elastic"):
        from elasticsearch import Elasticsearch
    for name in ("elasticsearch", "elastic_transport"):
        logging.getLogger(name).addHandler(logging.NullHandler())  # we report failures ourselves
    seconds = _timeout() if timeout is None else timeout
    return Elasticsearch(
        list(urls),
        request_timeout=seconds / len(urls),
        max_retries=max(
            1, len(urls) - 1
        ),  # one address: a connection that was closed while idle is opened anew
        retry_on_timeout=len(urls) > 1,
        **_credentials(),
    )


def _timeout() -> float:
    text = os.environ.get(f"{PREFIX}TIMEOUT", "")
    try:
        seconds = float(text) if text else SEARCH_SECONDS
    except ValueError:
        seconds = -1
    if seconds <= 0:
        raise IndexesError(f"{PREFIX}TIMEOUT is {text!r}: give a positive number of seconds")
    return seconds


def _credentials() -> dict[str, Any]:
    """Return the client's options for who we are and whom we trust."""
    options: dict[str, Any] = {}
    key, user, password = (_secret(name) for name in ("API_KEY", "USER", "PASSWORD"))
    if key and user:
        raise IndexesError(f"both {PREFIX}API_KEY and {PREFIX}USER are set: use one of them")
    if key:
        options["api_key"] = key
    elif user:
        options["basic_auth"] = (user, password)
    if authority := os.environ.get(f"{PREFIX}CA"):
        if not Path(authority).is_file():
            raise IndexesError(f"{PREFIX}CA names no file: {authority}")
        options["ca_certs"] = authority
    return options


def _secret(name: str) -> str:
    """Return what the variable, or the file that NAME_FILE names, holds."""
    file = os.environ.get(f"{PREFIX}{name}_FILE")
    if not file:
        return os.environ.get(f"{PREFIX}{name}", "")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as e:
        raise IndexesError(f"cannot read the file that {PREFIX}{name}_FILE names: {e.strerror}") from None


@contextlib.contextmanager
def elastic_errors(settings: ElasticSettings) -> Iterator[None]:
    """Turn the client's errors into ours; what may pass is a BackendUnavailableError."""
    from elasticsearch import ApiError, TransportError, UnsupportedProductError

    where = f"Elasticsearch at {', '.join(settings.urls)}"
    try:
        yield
    except UnsupportedProductError:
        raise BackendUnavailableError(
            f"what answers at {', '.join(settings.urls)} is no Elasticsearch"
        ) from None
    except ApiError as e:
        raise api_error(settings, e.status_code, reason_of(e.body)) from None
    except TransportError as e:
        raise BackendUnavailableError(
            f"{where} does not answer ({type(e).__name__}: {_short(str(e.message))}): check that it runs"
        ) from None


def api_error(settings: ElasticSettings, status: int, reason: str) -> IndexesError:
    """Return what an answer of this status means: that the server cannot answer now, or that we erred."""
    where, index = f"Elasticsearch at {', '.join(settings.urls)}", settings.index
    if status in (401, 403):
        return BackendUnavailableError(
            f"{where} refuses us ({status}): set {PREFIX}API_KEY, or {PREFIX}USER and {PREFIX}PASSWORD"
        )
    if status == 404:
        return BackendUnavailableError(
            f"{where} has no index {index!r}: restore it with `linker index rebuild`, or build the index anew"
        )
    if status in BUSY or status >= 500:
        return BackendUnavailableError(f"{where} cannot answer now ({status}: {_short(reason)})")
    return IndexesError(f"{where} refused a request ({status}: {_short(reason)})")


def reason_of(body: object) -> str:
    """Return what an error that Elasticsearch sent comes from: the innermost cause it names."""
    error: Any = body.get("error", body) if isinstance(body, Mapping) else body
    while isinstance(error, Mapping) and (inner := (error.get("root_cause") or [error.get("caused_by")])[0]):
        error = inner
    return f"{error.get('type')}: {error.get('reason')}" if isinstance(error, Mapping) else str(error)


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"
