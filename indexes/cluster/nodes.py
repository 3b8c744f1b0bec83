"""Which nodes of a cluster did not answer lately: all clients of this process ask the others first."""

from __future__ import annotations

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

AWAY = 15.0  # seconds for which a node that did not answer is asked only if no other is there

_away: dict[str, float] = {}  # by address, until when


class RememberedNode(Urllib3HttpNode):
    """A node whose failures other clients learn of, so that not each has to wait for it."""

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
    """Takes the nodes in turn, without those that did not answer lately as long as there are others."""

    def select(self, nodes: Sequence[BaseNode]) -> BaseNode:
        """Return the next node."""
        now = time.monotonic()
        return super().select([node for node in nodes if _away.get(node.base_url, 0) < now] or nodes)
