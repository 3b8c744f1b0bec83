"""Searches that tolerate a node that is down: they are retried if another node has a copy, and are never partial."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from indexes.cluster.client import (
    BUSY,
    PING_SECONDS,
    REMEDY,
    ElasticSettings,
    PassingError,
    api_error,
    reason_of,
)
from indexes.cluster.dialects import DIALECTS
from indexes.interface import BackendUnavailableError

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # seconds between tries
ANY_COPY = 60.0  # how many seconds any copy may answer after the preferred copy has timed out
SMALLER = 600.0  # how many seconds requests have fewer searches after one timed out

T = TypeVar("T")


class Requester:
    """Sends searches and other requests that every shard must answer."""

    def __init__(self, client: Elasticsearch, settings: ElasticSettings, preference: str) -> None:
        """The same shard copies answer all searches with the same `preference`, so that ties keep their order."""
        self._client, self._settings, self._preference = client, settings, preference
        self._once = client.options(retry_on_timeout=False)
        self._others = client.options(max_retries=max(0, len(settings.urls) - 2))
        self._any_until = 0.0
        self._most, self._fewer_until = 0, 0.0

    def retry(self, ask: Callable[[], T], seconds: float | None = None) -> T:
        """Return the result of `ask`, which is retried while it raises PassingError, for at most `seconds`.

        The default suits a search: six seconds if there are replicas; without them, no other node could answer, so
        `ask` is called once. Raises the last PassingError.
        """
        if seconds is None:
            seconds = sum(PAUSES) if self._settings.replicas else 0.0
        end = time.monotonic() + seconds
        for pause in itertools.chain(PAUSES, itertools.repeat(PAUSES[-1])):
            try:
                return ask()
            except PassingError:
                if time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
        raise AssertionError("the pauses never end")

    def ping(self, index: str) -> None:
        """Check, with a short timeout, that the index would answer a search. Raises the client's errors if not."""
        self._client.options(max_retries=0, request_timeout=PING_SECONDS).search(
            index=index, size=0, terminate_after=1, track_total_hits=False, allow_partial_search_results=False
        )

    def check(self, answer: Mapping[str, Any]) -> None:
        """Raise PassingError if a response reports failed shards."""
        shards = answer.get("_shards", {})
        if shards.get("failed"):
            raise PassingError(
                f"{shards['failed']} of the {shards['total']} shards of {self._settings.index} did not answer "
                f"({reason_of(answer)}): {REMEDY}"
            )

    def msearch(self, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the complete response to each search: its `hits`, and its `aggregations` if requested.

        With replicas, a search whose node died is sent again, because another node has a copy. Raises
        BackendUnavailableError if a response is missing or partial, IndexesError if a search is rejected.
        """
        answers = self._search(index, bodies) if bodies else []
        for pause in PAUSES if self._settings.replicas else ():
            retries = [i for i, answer in enumerate(answers) if answer["status"] in BUSY]
            if not retries:
                break
            time.sleep(pause)
            for i, answer in zip(retries, self._search(index, [bodies[i] for i in retries]), strict=True):
                answers[i] = answer
        return [self._whole_answer(answer) for answer in answers]

    def _search(self, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send searches. The time limit is for one search: if several together take longer, retry them in halves.

        For SMALLER seconds, later requests have at most as many searches as a half.
        """
        dialect, middle = DIALECTS[self._settings.server], len(bodies) // 2
        if len(bodies) <= self._most or time.monotonic() > self._fewer_until:
            with dialect.errors(self._settings):
                try:
                    return self._whole(index, bodies)
                except dialect.timed_out():
                    if not middle:
                        raise
                    self.ping(index)  # raises if the server hangs: then retrying would only take longer
            self._most, self._fewer_until = middle, time.monotonic() + SMALLER
        return [*self._search(index, bodies[:middle]), *self._search(index, bodies[middle:])]

    def _whole(self, index: str, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send one request; if the preferred copies hang, as on a node that is cut off, let any copy answer."""
        if not self._settings.replicas:
            return self._post(self._client, index, bodies, self._preference)
        if time.monotonic() < self._any_until:
            return self._post(self._client, index, bodies)
        try:
            return self._post(self._once, index, bodies, self._preference)
        except DIALECTS[self._settings.server].timed_out():
            self._any_until = time.monotonic() + ANY_COPY
            if len(self._settings.urls) == 1:
                raise  # the search's time limit has passed
            return self._post(self._others, index, bodies)

    def _post(
        self, client: Elasticsearch, index: str, bodies: Sequence[Mapping[str, Any]], preference: str = ""
    ) -> list[dict[str, Any]]:
        header: dict[str, Any] = {"allow_partial_search_results": False}
        if preference:
            header["preference"] = preference
        ranked = header | ({"search_type": "dfs_query_then_fetch"} if self._settings.shards > 1 else {})
        # A search that asks only for counts ranks nothing; with the default search type, the server caches it.
        headers = (ranked if body.get("size") != 0 else header for body in bodies)
        lines = [line for pair in zip(headers, bodies, strict=True) for line in map(_json, pair)]
        answer = client.msearch(
            searches=lines,  # type: ignore[arg-type]  # bytes are sent as they are
            index=index,
            filter_path="responses.status,responses.error,responses.timed_out,responses._shards.failed,"
            "responses.hits.hits.sort,responses.hits.hits.fields,responses.hits.total,responses.aggregations",
        )
        responses: list[dict[str, Any]] = answer.body["responses"]
        return responses

    def _whole_answer(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        status = response["status"]
        if status != 200:
            raise api_error(self._settings, status, reason_of(response))
        if response.get("timed_out") or response.get("_shards", {}).get("failed"):
            raise BackendUnavailableError(
                f"{self._settings.index} returned only a part of a search's results: search again"
            )
        return response


def hits_of(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the hits in a response, each with its `sort` values and the stored `fields` that were requested."""
    found: list[Mapping[str, Any]] = answer.get("hits", {}).get("hits", [])
    return found


def _json(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
