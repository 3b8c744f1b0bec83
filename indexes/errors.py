"""The exceptions of `indexes`, in a separate module so that the command line can use them without numpy."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any, Self, SupportsIndex

DISTRIBUTION = "starlinker"  # our name on the package index, where "linker" is another project


def install(extra: str) -> str:
    """Return the command that installs one of our extras: by name only if linker itself came from a package index."""
    import importlib.metadata

    try:
        origin = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")  # PEP 610
    except importlib.metadata.PackageNotFoundError:
        origin = "a folder"
    return (
        f"pip install '.[{extra}]' in linker's repository"
        if origin
        else f"pip install '{DISTRIBUTION}[{extra}]'"
    )


class Reason(str):
    """A reason in English; from its `cause` (a code) and `facts` (values), callers can word it in another language."""

    cause: str
    facts: Mapping[str, Any]

    def __new__(cls, text: str = "", cause: str = "", **facts: Any) -> Self:
        """Return `text` as a reason; without a `cause`, callers can only show the text."""
        reason = super().__new__(cls, text)
        reason.cause, reason.facts = cause, facts
        return reason

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Reason:
        """Return the reason with `new` in place of `old`, in its text and in its facts."""
        facts = {k: v.replace(old, new, count) if isinstance(v, str) else v for k, v in self.facts.items()}
        return Reason(super().replace(old, new, count), self.cause, **facts)

    def to_json(self) -> tuple[str, str, Mapping[str, Any]]:
        """Return the reason as JSON values, which `of` reads."""
        return str(self), self.cause, self.facts

    @classmethod
    def of(cls, values: tuple[str, str, Mapping[str, Any]]) -> Self:
        """Return the reason that `to_json` described."""
        text, cause, facts = values
        return cls(text, cause, **facts)


# The `cause` of errors of the operating system, by errno.
CAUSES = {
    errno.ENOSPC: "disk-full",
    errno.EDQUOT: "disk-full",
    errno.EACCES: "not-allowed",
    errno.EPERM: "not-allowed",
    errno.EROFS: "not-allowed",
    errno.EIO: "disk-faulty",
}


def reason_of(error: BaseException) -> Reason:
    """Return the text of an error, with the cause and facts of the first error in its chain that has any."""
    source: BaseException | None = error
    while source is not None:
        text = source.args[0] if source.args else ""
        if isinstance(text, Reason) and text.cause:
            return Reason(str(error), text.cause, **text.facts)
        if cause := getattr(source, "cause", "") or CAUSES.get(getattr(source, "errno", None) or 0):
            return Reason(str(error), cause)
        source = source.__cause__
    return Reason(str(error))


class IndexesError(Exception):
    """Base of every error of this package; its message names the problem and the remedy."""


class DuplicateIdError(IndexesError):
    """An id to add is already present, or occurs more than once in the batch."""


class UnknownIdError(IndexesError):
    """An id to remove or to read is not present."""


class BadIdError(IndexesError):
    """An id is empty, is not a string or holds white space or control characters."""


class BadDocumentError(IndexesError):
    """A document cannot be stored: its metadata cannot be represented in JSON, or its text is not valid Unicode."""


class BadVectorError(IndexesError):
    """A vector holds NaN or infinity, or has the wrong dimension or dtype."""


class BadFilterError(IndexesError):
    """A filter cannot be parsed, or cannot be applied to the documents' metadata."""


class BackendUnavailableError(IndexesError):
    """A backend cannot answer now; in hybrid search the other retriever may still answer."""


class UntrustedHostError(BackendUnavailableError):
    """Credentials would go to a host that the user has not named, or over a connection that others can read."""


class MissingExtraError(BackendUnavailableError):
    """A package of an optional extra is not installed; the message names the extra."""

    cause = "not-installed"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': {install(extra)}")


class LockedError(IndexesError):
    """Another process, or another thread, is writing to the index."""

    cause = "busy"


class DamagedError(IndexesError):
    """A file of the index is missing, truncated or altered; the message names it."""

    cause = "damaged"


class FormatVersionError(IndexesError):
    """The index was written in a format that this version cannot read."""


class EncoderMismatchError(IndexesError):
    """The encoder of a query, or of another index, is not the one used to build the index."""


@contextlib.contextmanager
def importing(what: str, extra: str) -> Iterator[None]:
    """Turn a failing import inside the block into an error that names the reason and the remedy.

    `what` is the feature that needs the package, and `extra` the optional dependency that includes it. Raises
    MissingExtraError if the package is not installed, and BackendUnavailableError if it is installed but cannot be
    loaded, for lack of memory or because the installation is damaged.
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
