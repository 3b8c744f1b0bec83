"""The logger `linker`, the parent of the package's loggers: silent unless a program gives it a handler."""

import contextlib
import logging
from collections.abc import Iterator

from linker.base.printable import printable


def _make_printable(record: logging.LogRecord) -> bool:
    """Make a record printable: file names may contain terminal control characters or undecodable bytes."""
    record.msg, record.args = printable(record.getMessage()), None
    return True


logger = logging.getLogger("linker")
logger.addHandler(logging.NullHandler())  # otherwise Python prints warnings on stderr by itself
logger.addFilter(_make_printable)


@contextlib.contextmanager
def logging_to(handler: logging.Handler, level: int = logging.INFO) -> Iterator[None]:
    """Within the context, send the package's log records of at least `level` to `handler` alone.

    Other packages add handlers to the root logger, which would repeat them.
    """
    before = logger.level, logger.propagate
    logger.propagate = False
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        level, logger.propagate = before
        logger.setLevel(level)
