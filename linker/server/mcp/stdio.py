"""MCP on stdin and stdout: a line that is not a message is answered with an error, never with silence."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


def serve(server: MCPServer[Any]) -> None:
    """Answer the client on stdin and stdout until it disconnects."""
    import anyio  # a dependency of mcp; the import of mcp above reports if it is missing

    anyio.run(_serve, server)


async def _serve(server: MCPServer[Any]) -> None:
    inner = server._lowlevel_server  # the server's own `run_stdio_async` drops lines that are not messages
    async with stdio_server() as (lines, answers):
        await inner.run(_Messages(lines, answers), answers, inner.create_initialization_options())


class _Messages:
    """Wraps a stream of messages and answers its unreadable lines with errors."""

    def __init__(
        self, lines: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]
    ) -> None:
        self._lines, self._answers = lines, answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lines, name)

    def __aiter__(self) -> _Messages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._read(self._lines.__anext__)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self._read(self._lines.receive)

    async def _read(
        self, following: Callable[[], Awaitable[SessionMessage | Exception]]
    ) -> SessionMessage | Exception:
        while isinstance(item := await following(), ValidationError):
            first = item.errors(include_url=False)[0]
            if not (isinstance(line := first["input"], str) and line.isspace()):
                await self._answers.send(SessionMessage(_refusal(first["type"], line)))
        return item

    async def __aenter__(self) -> _Messages:
        await self._lines.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._lines.__aexit__(*raised)


def _refusal(kind: str, line: Any) -> JSONRPCError:
    """Return the error for a line that is not a message, with the request's id if that can be read."""
    code, text = INVALID_REQUEST, "this is not a JSON-RPC 2.0 message"
    if kind == "json_invalid":
        code, text = PARSE_ERROR, "this line is not JSON in UTF-8, or it contains a lone surrogate"
        try:
            line = json.loads(line)  # json accepts lone surrogates, which UTF-8 cannot encode
        except (ValueError, RecursionError):
            line = None
    id_ = line.get("id") if isinstance(line, dict) else None
    return JSONRPCError(jsonrpc="2.0", id=_usable(id_), error=ErrorData(code=code, message=text))


def _usable(id_: Any) -> int | str | None:
    """Return the id of a request if JSON-RPC allows it and UTF-8 can encode it."""
    if isinstance(id_, str):
        return None if any("\ud800" <= c <= "\udfff" for c in id_) else id_
    return id_ if isinstance(id_, int) and not isinstance(id_, bool) else None
