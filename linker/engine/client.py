"""Search on a running server as with `Engine.search`, without an index, an encoder or torch in this process."""

import http.client
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

import numpy as np
import orjson

from indexes.hybrid import Answer, Mode, joined
from indexes.interface import Document, Hits, UnknownIdError
from linker.base.errors import InputError

TOKEN = "LINKER_TOKEN"  # environment variable with the token
TIMEOUT = 120.0  # seconds to wait for an answer
MOST_TEXTS, MOST_HITS = 256, 50_000  # maximum number of texts, and hits, per request
PREFIX = "http://"


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address, and the token that it requires (empty: none)."""

    url: SplitResult
    token: str = ""

    @classmethod
    def of(cls, url: str, token_file: Path | None = None) -> Self:
        """Return the server at `url` with the token in the file or the environment. Raises InputError if invalid."""
        try:
            parsed = urlsplit(url if "://" in url else PREFIX + url)
            usable = parsed.scheme in ("http", "https") and bool(parsed.hostname) and parsed.port != 0
        except ValueError:  # the port is not a number
            usable = False
        if not usable or parsed.query or parsed.fragment or parsed.username is not None:
            raise InputError(f"`server` {url} is not an address such as http://127.0.0.1:8000")
        return cls(parsed, _token(token_file))

    def search(
        self,
        texts: Sequence[str],
        k: int = 10,
        *,
        index: str | None = None,
        mode: Mode | None = None,
        where: Sequence[str] = (),
        rerank: bool | str = True,
        phrases: bool = False,
        documents: bool = True,
    ) -> Answer:
        """Return the top k documents for each text, as `Engine.search` does on the server.

        `index`: the name of the index on the server, which is optional if only one is served. Without `documents`, hits
        have only ids and scores. Raises InputError if the server does not answer or, with its reason, refuses.
        """
        options = {
            "index": index, "k": k, "mode": mode, "where": list(where) or None, "rerank": rerank, "phrases": phrases,
            "documents": documents,
        }  # fmt: skip
        size = max(1, min(MOST_TEXTS, MOST_HITS // k))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)] or [texts]
        answers = [self._post("v1/search", {**options, "texts": list(part)}) for part in parts]
        try:
            return joined([_answer(each) for each in answers])
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(f"{self._address} sent a response that this version cannot read: {e!r}") from e

    @property
    def _address(self) -> str:
        return self.url.geturl()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        connect = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.url.hostname or "", self.url.port, timeout=TIMEOUT)
        try:
            connection.request("POST", f"{self.url.path.rstrip('/')}/{path}", orjson.dumps(body), headers)
            response = connection.getresponse()
            status, content = response.status, response.read()
        except (OSError, http.client.HTTPException) as e:
            raise InputError(
                f"{self._address} does not answer: {_reason(e)}: is `linker serve --api` running there?"
            ) from e
        finally:
            connection.close()
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = None
        if status == http.client.OK and isinstance(answer, dict):
            return answer
        raise InputError(f"{self._address}: {_refusal(status, answer)}")


def _token(file: Path | None) -> str:
    """Return the token in `file` or, without a file, in the environment. Raises InputError if it is malformed."""
    if file is None:
        token, source = os.environ.get(TOKEN, "").strip(), f"the environment variable {TOKEN}"
    else:
        try:
            token, source = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as e:
            raise InputError(f"cannot read the token in {file}: {getattr(e, 'strerror', None) or e}") from e
        if not token:
            raise InputError(f"{file} is empty: write the server's token into it")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{source} must contain a single token in printable ASCII, without spaces")
    return token


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _refusal(status: int, answer: Any) -> str:
    """Return a server's message about a refused request, and the remedy if we know it."""
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if not isinstance(detail, str):
        return f"this is not the API of `linker serve --api` (HTTP status {status})"
    if status == http.client.UNAUTHORIZED:
        return f"{detail}; name its file with `token_file`, or set {TOKEN}"
    return detail


def _answer(body: dict[str, Any]) -> Answer:
    """Return the answer in a response body. Raises KeyError, TypeError or ValueError if it is malformed."""
    return Answer(
        [
            replace(_hits(result["hits"], bool(body["calibration"])), no_match=result.get("no_match"))
            for result in body["results"]
        ],
        body["mode"],
        body["degraded"],
        body["reranked"],
        body["ranker"],
        body["calibration"],
        tuple(body["notes"]),
    )


def _hits(listed: Sequence[dict[str, Any]], calibrated: bool) -> Hits:
    documents = {
        hit["id"]: Document(hit["id"], hit["text"], hit["title"] or "", hit["metadata"] or {})
        for hit in listed
        if hit.get("text") is not None
    }

    def read(id_: str) -> Document:
        if id_ not in documents:
            raise UnknownIdError(f"the server sent no document {id_!r}")
        return documents[id_]

    scores = np.array([hit["score"] for hit in listed], dtype=np.float32)
    known = np.array([hit.get("probability") for hit in listed], dtype=np.float64) if calibrated else None
    return Hits(tuple(hit["id"] for hit in listed), scores, read if documents else None, probabilities=known)
