"""The error tree of `indexes`; apart, so that the command line can know it without loading numpy."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator


class IndexesError(Exception):
    """Base of every error of this package; its text names what was wrong and the remedy."""


class DuplicateIdError(IndexesError):
    """An id that is being added is already present (or repeats inside the batch)."""


class UnknownIdError(IndexesError):
    """An id that should be removed or read is not present."""


class BadIdError(IndexesError):
    """An id is empty, is not a string or holds white space or control characters."""


class BadDocumentError(IndexesError):
    """A document holds what cannot be stored as JSON, or text that is no text."""


class BadVectorError(IndexesError):
    """A vector holds NaN or infinity, or has the wrong dimension or dtype."""


class BadFilterError(IndexesError):
    """A filter that cannot be read."""


class BackendUnavailableError(IndexesError):
    """One side of a hybrid cannot answer now; the other side may go on."""


class MissingExtraError(BackendUnavailableError):
    """A package of an optional extra is not installed; the text names the extra."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'linker[{extra}]'")


class LockedError(IndexesError):
    """Another process is writing to the index."""


class DamagedError(IndexesError):
    """A file of the index is missing, truncated or altered; the text names it."""


class FormatVersionError(IndexesError):
    """The index was written in a format this version cannot read."""


class EncoderMismatchError(IndexesError):
    """The query's encoder is not the one the index was built with."""


@contextlib.contextmanager
def importing(what: str, extra: str) -> Iterator[None]:
    """Say why an import inside fails: its package is not installed, and `extra` brings it; or it cannot be loaded.

    `what` is what needs it. Raises MissingExtraError, and BackendUnavailableError where memory is short or the
    installation is damaged, which another `pip install` would not mend.
    """
    try:
        yield
    except (ImportError, MemoryError, OSError) as e:
        if isinstance(e, ModuleNotFoundError) and not _is_installed(e.name):
            raise MissingExtraError(what, extra) from None
        raise BackendUnavailableError(
            f"{what}: a package that is installed cannot be loaded ({str(e) or type(e).__name__}): memory is short "
            "(see `ulimit -v`) or the installation is damaged"
        ) from e


def _is_installed(module: str | None) -> bool:
    return importlib.util.find_spec((module or "").partition(".")[0] or "builtins") is not None
