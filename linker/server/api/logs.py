"""The service's log: a line per request, as text or JSON, never containing a text, a document id or a secret."""

import contextlib
import logging
import logging.handlers
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any, Literal

import orjson

LogFormat = Literal["text", "json"]
log = logging.getLogger("linker.service")
WAITING = 10_000  # maximum number of lines waiting to be written; further lines are dropped
FLUSH = 2.0  # seconds allowed at shutdown for writing the last lines


class _Formatter(logging.Formatter):
    """Formats a record as one line: time, level, message and fields, which are the server's own numbers and names."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._as_json = kind == "json"

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z"
        fields: dict[str, Any] = getattr(record, "fields", {})
        if self._as_json:
            head = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage()}
            return orjson.dumps({**head, **fields}, default=str).decode()
        shown = " ".join(f"{name}={value}" for name, value in fields.items())
        return f"{moment} {record.levelname.lower()} {record.getMessage()} {shown}".rstrip()


def configure(kind: str = "text") -> None:
    """Write the log to stderr, as "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(kind))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


class _Queued(logging.handlers.QueueHandler):
    """Queues records for a thread to write; if it cannot keep up, records are dropped, so that no request waits."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self.queue.put_nowait(record)


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Write the log, and uvicorn's, in a thread: otherwise a stderr that nobody reads would block all requests."""
    handlers, loggers = log.handlers[:], (log, logging.getLogger("uvicorn"))
    if not handlers:  # nobody has configured logging
        yield
        return
    before = [logger.handlers[:] for logger in loggers]
    lines = queue.Queue[logging.LogRecord | None](WAITING)

    def write() -> None:
        for record in iter(lines.get, None):
            for handler in handlers:
                handler.handle(record)

    thread = threading.Thread(target=write, name="write the log", daemon=True)
    thread.start()
    for logger in loggers:
        logger.handlers[:] = [_Queued(lines)]
    try:
        yield
    finally:
        for logger, old in zip(loggers, before, strict=True):
            logger.handlers[:] = old
        with contextlib.suppress(queue.Full):
            lines.put_nowait(None)
        thread.join(FLUSH)


def event(message: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event, with fields."""
    log.log(level, message, extra={"fields": fields})


def fault(request_id: str, error: BaseException) -> None:
    """Log an internal error by its type and origin; its text may quote a document, so it is left out."""
    frames = [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)[-8:]
    ]
    event(
        "error", logging.ERROR, request_id=request_id, error=type(error).__name__, at=" < ".join(frames[::-1])
    )


def name(text: str) -> str:
    """Return a name from a header in a form that is safe to log."""
    return "".join(c for c in text if c.isprintable() and c != " ")[:64]
