"""The connection to OpenSearch: opensearch-py's transport and, on top, the client calls that this package makes.

The calls are those of Elasticsearch's client, from whose server OpenSearch descends; differences between the two are
translated here.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from indexes.cluster import trust
from indexes.cluster.client import (
    BUSY,
    ElasticSettings,
    api_error,
    authority,
    authorization,
    no_answer,
    not_the_product,
    reason_of,
    seconds_of,
)
from indexes.errors import importing
from indexes.interface import IndexesError

if TYPE_CHECKING:
    import ssl

    from opensearchpy import Transport

CONNECTIONS = 10  # connections kept open to each node
# search parameters that go into the URL, not into the body
IN_ADDRESS = ("allow_partial_search_results",)


class Reply(dict[str, Any]):
    """A response: a mapping that is also its own `body`, as the responses of Elasticsearch's client have one."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The response itself."""
        return self


@dataclass(frozen=True)
class OpenSearchClient:
    """Sends requests, with a timeout of `seconds` for each node that it tries."""

    transport: Transport
    seconds: float

    def options(
        self,
        *,
        request_timeout: float | None = None,
        max_retries: int | None = None,
        retry_on_timeout: bool | None = None,
    ) -> OpenSearchClient:
        """Return a client with other options over the same connections."""
        transport = copy.copy(self.transport)
        if max_retries is not None:
            transport.max_retries = max_retries
        if retry_on_timeout is not None:
            transport.retry_on_timeout = retry_on_timeout
        return dataclasses.replace(self, transport=transport, seconds=request_timeout or self.seconds)

    def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> Reply:
        """Send a request and return its response. Raises opensearch-py's errors."""
        params = {name: _url_value(value) for name, value in parameters.items() if value is not None}
        answer = self.transport.perform_request(method, path, params=params, body=body, timeout=self.seconds)
        return Reply(answer or {})

    def exists(self, path: str) -> bool:
        """Return whether there is a resource at `path`. Raises opensearch-py's errors."""
        return bool(self.transport.perform_request("HEAD", path, timeout=self.seconds))

    @property
    def indices(self) -> Indices:
        """The calls about whole indexes."""
        return Indices(self)

    @property
    def cluster(self) -> Cluster:
        """The calls about the cluster."""
        return Cluster(self)

    def search(self, *, index: str = "", **values: Any) -> Reply:
        """Search an index, or a point in time."""
        parameters = {name: values.pop(name) for name in IN_ADDRESS if name in values}
        body = {{"source": "_source"}.get(name, name): v for name, v in values.items() if v is not None}
        return self.request("POST", f"/{index}/_search" if index else "/_search", body, **parameters)

    def msearch(self, *, searches: Sequence[bytes], index: str, **parameters: Any) -> Reply:
        """Send several searches, whose lines are JSON."""
        return self.request("POST", f"/{index}/_msearch", _lines(searches), **parameters)

    def bulk(self, *, operations: Sequence[bytes], index: str, **parameters: Any) -> Reply:
        """Send operations, whose lines are JSON."""
        return self.request("POST", f"/{index}/_bulk", _lines(operations), **parameters)

    def mget(
        self, *, index: str, ids: Sequence[str], source: bool = True, stored_fields: Sequence[str] = ()
    ) -> Reply:
        """Read documents by id."""
        fields = ",".join(stored_fields) or None
        return self.request("POST", f"/{index}/_mget", {"ids": ids}, _source=source, stored_fields=fields)

    def count(self, *, index: str, query: Any = None, **parameters: Any) -> Reply:
        """Count documents."""
        return self.request("POST", f"/{index}/_count", {"query": query} if query else None, **parameters)

    def open_point_in_time(self, *, index: str, keep_alive: str) -> Reply:
        """Open a point in time and return its `id`."""
        path = f"/{index}/_search/point_in_time"
        return Reply(id=self.request("POST", path, keep_alive=keep_alive)["pit_id"])

    def close_point_in_time(self, *, id: str) -> Reply:
        """Close a point in time."""
        return self.request("DELETE", "/_search/point_in_time", {"pit_id": [id]})

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()


@dataclass(frozen=True)
class Indices:
    """Calls about whole indexes."""

    client: OpenSearchClient

    def get(self, *, index: str, master_timeout: str | None = None, **parameters: Any) -> Reply:
        """Return the mappings and settings of indexes."""
        return self.client.request("GET", f"/{index}", cluster_manager_timeout=master_timeout, **parameters)

    def exists(self, *, index: str) -> bool:
        """Return whether there is an index or an alias of the name."""
        return self.client.exists(f"/{index}")

    def exists_alias(self, *, name: str) -> bool:
        """Return whether there is an alias."""
        return self.client.exists(f"/_alias/{name}")

    def get_alias(self, *, name: str) -> Reply:
        """Return the indexes that have an alias."""
        return self.client.request("GET", f"/_alias/{name}")

    def update_aliases(self, *, actions: Sequence[Any]) -> Reply:
        """Move aliases and delete indexes, in one step."""
        return self.client.request("POST", "/_aliases", {"actions": actions})

    def create(
        self,
        *,
        index: str,
        wait_for_active_shards: str | None = None,
        timeout: str | None = None,
        **body: Any,
    ) -> Reply:
        """Create an index."""
        return self.client.request(
            "PUT", f"/{index}", body, wait_for_active_shards=wait_for_active_shards, timeout=timeout
        )

    def delete(self, *, index: str | Sequence[str], **parameters: Any) -> Reply:
        """Delete indexes."""
        names = index if isinstance(index, str) else ",".join(index)
        return self.client.request("DELETE", f"/{names}", **parameters)

    def get_mapping(self, *, index: str) -> Reply:
        """Return the mappings of indexes."""
        return self.client.request("GET", f"/{index}/_mapping")

    def put_mapping(self, *, index: str, meta: Any) -> Reply:
        """Update the mapping of the index."""
        return self.client.request("PUT", f"/{index}/_mapping", {"_meta": meta})

    def put_settings(self, *, index: str, settings: Any) -> Reply:
        """Change the settings of the index."""
        return self.client.request("PUT", f"/{index}/_settings", settings)

    def add_block(self, *, index: str, block: str) -> Reply:
        """Block all further requests of one kind to the index, such as writes."""
        return self.client.request("PUT", f"/{index}/_block/{block}")

    def refresh(self, *, index: str) -> Reply:
        """Make written documents visible."""
        return self.client.request("POST", f"/{index}/_refresh")

    def stats(self, *, index: str, metric: str) -> Reply:
        """Return the statistics of an index."""
        return self.client.request("GET", f"/{index}/_stats/{metric}")

    def forcemerge(self, *, index: str, only_expunge_deletes: bool) -> Reply:
        """Merge the segments."""
        path = f"/{index}/_forcemerge"
        return self.client.request("POST", path, only_expunge_deletes=only_expunge_deletes)


@dataclass(frozen=True)
class Cluster:
    """Calls about the cluster."""

    client: OpenSearchClient

    def health(self, *, index: str) -> Reply:
        """Return how many shards of an index are available."""
        return self.client.request("GET", f"/_cluster/health/{index}")

    def state(self, *, metric: str, local: bool, filter_path: str) -> Reply:
        """Return the master known to a node, which OpenSearch calls the cluster manager."""
        assert (metric, filter_path) == ("master_node", "master_node")
        manager = "cluster_manager_node"
        answer = self.client.request("GET", f"/_cluster/state/{manager}", local=local, filter_path=manager)
        return Reply({"master_node": answer[manager]} if answer and manager in answer else {})


def connect(settings: ElasticSettings, timeout: float | None = None) -> OpenSearchClient:
    """Return a client whose searches time out after `timeout` seconds (default: LINKER_OPENSEARCH_TIMEOUT, or 10).

    As for Elasticsearch, nothing is sent yet, the time is divided among the addresses, redirects are not followed and
    nodes are not discovered. Raises MissingExtraError if the client library is missing, UntrustedHostError if
    credentials must not go to an address, IndexesError if they are invalid.
    """
    with importing("the OpenSearch backend", "opensearch"):
        from opensearchpy import Transport
    logging.getLogger("opensearch").addHandler(logging.NullHandler())  # linker reports failures itself
    seconds = seconds_of(settings) if timeout is None else timeout
    urls, header = list(dict.fromkeys(settings.urls)), authorization(settings)
    if header:
        trust.check(urls, named=settings.named)
    transport = Transport(
        [_node(url) for url in urls],
        headers={"authorization": header} if header else {},
        max_retries=max(1, len(urls) - 1),
        retry_on_timeout=len(urls) > 1,
        retry_on_status=BUSY,
        pool_maxsize=CONNECTIONS,
        ssl_context=_ssl_context(authority(settings)),
    )
    return OpenSearchClient(transport, seconds / len(urls))


@contextlib.contextmanager
def errors(settings: ElasticSettings) -> Iterator[None]:
    """Turn the client's errors into ours. Raises the same errors as `client.elastic_errors`."""
    from opensearchpy import OpenSearchException, TransportError

    try:
        yield
    except TransportError as e:
        reason = reason_of(e.info or e.error)
        if "cluster_manager_timeout" in reason:  # Elasticsearch rejects this parameter
            raise not_the_product(settings) from None
        if isinstance(e.status_code, int):
            raise api_error(settings, e.status_code, reason) from None
        raise no_answer(settings, type(e).__name__, str(e.error)) from None
    except (OpenSearchException, ValueError):  # the answer is not a JSON object
        raise not_the_product(settings) from None


def timed_out() -> type[Exception]:
    """Return the error of a request that a node did not answer in time."""
    from opensearchpy import ConnectionTimeout

    return ConnectionTimeout


def _node(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    port = parts.port or int(trust.PORTS[parts.scheme])
    return {
        "host": parts.hostname,
        "port": port,
        "use_ssl": parts.scheme == "https",
        "url_prefix": parts.path,
    }


def _ssl_context(authority: str | None) -> ssl.SSLContext:
    """Return the SSL context that trusts this authority or the system's. Raises IndexesError if it is invalid."""
    import ssl  # imported here, so that a search without a server need not wait for it

    try:
        return ssl.create_default_context(cafile=authority)
    except ssl.SSLError:
        raise IndexesError(
            f"{authority} contains no certificate: give the authority's certificate as PEM"
        ) from None


def _lines(lines: Sequence[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def _url_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
