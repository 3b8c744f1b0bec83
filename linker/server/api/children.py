"""Process one client's request body in a separate process, which ends with the request.

A thread would not do: parsing 16 MiB of JSON holds the global interpreter lock for seconds, which blocks all requests.
"""

import asyncio
import contextlib
import importlib
import os
import sys
from typing import Any

import orjson

from linker.server.api.pool import BusyError

LARGE = 256 << 10  # bytes; a larger body is read in the server only once it is known to be valid
MOST_ERRORS = 100  # maximum number of invalid fields to report
MOST_SHOWN = 100  # maximum number of values per list in the short form of a request
NICE = 10  # lower priority, so that searches go first


async def run(module: str, *arguments: str, body: bytes) -> bytes:
    """Run a module with `body` as its input and return its output; if the caller gives up, the process is killed.

    Raises BusyError if the process fails, for instance for lack of memory.
    """
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
    if child.returncode:
        raise BusyError("the process that reads large requests failed: try again later")
    return written


def read(body: bytes, module: str, path: str) -> bytes:
    """Validate a request body against the route `path` of `module`, and return the result as lines of JSON.

    The first line has the "errors" and, if there are none and the work is for a job, the "request" in a short form:
    its lists truncated to MOST_SHOWN values. The specification of the job follows, so that the server need not read
    it.
    """
    routes = importlib.import_module(module).router.routes
    field = next(r.body_field for r in routes if r.path == path and r.body_field)
    try:
        request, errors = field.validate(orjson.loads(body), loc=("body",))
    except orjson.JSONDecodeError:
        return orjson.dumps({"errors": [{"type": "json_invalid", "loc": ["body"], "msg": "not JSON"}]})
    if errors or not hasattr(request, "spec"):
        return orjson.dumps({"errors": trim(errors)})
    short = _shortened(request.model_dump())
    return orjson.dumps({"errors": [], "request": short}) + b"\n" + orjson.dumps(request.spec())


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    return value[:MOST_SHOWN] if isinstance(value, list) else value


def trim(errors: Any) -> list[dict[str, Any]]:
    """Return the first MOST_ERRORS pydantic errors, without the invalid values."""
    return [{name: each[name] for name in ("type", "loc", "msg")} for each in errors[:MOST_ERRORS]]


if __name__ == "__main__":
    os.nice(NICE)
    sys.stdout.buffer.write(read(sys.stdin.buffer.read(), *sys.argv[1:]))
