"""Work on what one client sends, in a process of its own, which ends with the request: no event loop waits for it.

A thread would not do: whoever reads a JSON of 16 MiB holds the interpreter for seconds, which everybody else needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
from typing import Any

import orjson

LARGE = 1 << 20  # bytes of a body that is read in the server only once it is known to fit its description
MOST_TOLD = 100  # fields that are wrong
NICE = 10  # searches go first


async def run(module: str, *arguments: str, body: bytes) -> Any:
    """Return the JSON that a module prints, which is run for a body; where the caller gives up, it is killed."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        written, _ = await child.communicate(body)
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    return orjson.loads(written)


def faults(body: bytes, module: str, path: str) -> list[dict[str, Any]]:
    """Return what is wrong with the body of a request to a route, which is the one with this path in a module."""
    field = next(r for r in importlib.import_module(module).router.routes if r.path == path).body_field
    try:
        _, errors = field.validate(orjson.loads(body), loc=("body",))
    except orjson.JSONDecodeError:
        return [{"type": "json_invalid", "loc": ["body"], "msg": "not JSON"}]
    return told(errors)


def told(errors: Any) -> list[dict[str, Any]]:
    """Return the first errors of pydantic, without the values that were sent."""
    return [{name: each[name] for name in ("type", "loc", "msg")} for each in errors[:MOST_TOLD]]


if __name__ == "__main__":
    os.nice(NICE)
    sys.stdout.buffer.write(orjson.dumps(faults(sys.stdin.buffer.read(), *sys.argv[1:])))
