"""Cluster nodes that did not answer recently: all clients of this process try the others first."""

import time
from collections.abc import Sequence
from typing import Any

from elastic_transport import (
    BaseNode,
    ConnectionError,
    ConnectionTimeout,
    RoundRobinSelector,
    Urllib3HttpNode,
)

AWAY = 15.0  # for so many seconds, a node that did not answer is used only if there is no other

_away: dict[str, float] = {}  # address → time until which the node is avoided


class RememberedNode(Urllib3HttpNode):
    """A node that shares its failures, so that clients need not each time out on it."""

    def perform_request(self, *args: Any, **options: Any) -> Any:
        """Return the answer to a request. Raises ConnectionError, ConnectionTimeout."""
        try:
            answer = super().perform_request(*args, **options)
        except (ConnectionError, ConnectionTimeout):
            _away[self.base_url] = time.monotonic() + AWAY
            raise
        _away.pop(self.base_url, None)
        return answer


class AnsweringFirst(RoundRobinSelector):
    """Selects the nodes in turn, skipping those that did not answer recently as long as there are others."""

    def select(self, nodes: Sequence[BaseNode]) -> BaseNode:
        """Return the next node."""
        now = time.monotonic()
        return super().select([node for node in nodes if _away.get(node.base_url, 0) < now] or nodes)
