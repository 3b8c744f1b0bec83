"""The register of errors: for each, an HTTP status, a code for programs and a sentence.

The API answers with problem details, the page with a page in the reader's language, MCP with the sentence.
"""

from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import ClientDisconnect

from indexes import errors
from linker.base.errors import InputError, LinkerError
from linker.base.printable import on_one_line, without_credentials
from linker.review.interface import JudgedMeanwhileError
from linker.server.api.pool import BusyError

OURS = "something went wrong in the server: its log has the details under this request id"
SILENT: Mapping[type[Exception], str] = {
    ClientDisconnect: "the connection was closed before the body had ended",
    TimeoutError: "there was no answer in time: ask for less, or try again later",
}
# The status of each kind of error, and its code for programs; a subclass comes before its base.
KNOWN: Mapping[type[Exception], tuple[int, str]] = {
    errors.UnknownIdError: (404, "unknown-document"),
    errors.DuplicateIdError: (409, "duplicate-document"),
    errors.BadIdError: (400, "bad-id"),
    errors.BadDocumentError: (400, "bad-document"),
    errors.BadFilterError: (400, "bad-filter"),
    errors.LockedError: (503, "locked"),
    errors.MissingExtraError: (501, "missing-extra"),
    errors.BackendUnavailableError: (503, "unavailable"),
    errors.DamagedError: (500, "damaged-index"),
    errors.FormatVersionError: (500, "unreadable-index"),
    errors.EncoderMismatchError: (500, "encoder-mismatch"),
    errors.IndexesError: (400, "bad-request"),
    JudgedMeanwhileError: (409, "judged-meanwhile"),
    InputError: (400, "bad-input"),
    BusyError: (503, "overloaded"),
    LinkerError: (400, "bad-request"),
    ClientDisconnect: (400, "disconnected"),
    TimeoutError: (504, "timeout"),
}


class RegisterEntry(NamedTuple):
    """A known error: its status, its code, and its text on one line, without credentials."""

    status: int
    code: str
    text: str


def known(error: Exception) -> RegisterEntry | None:
    """Return the register's entry for an error; None for an internal error, which is not shown to clients."""
    for kind, (status, code) in KNOWN.items():
        if isinstance(error, kind):
            return RegisterEntry(
                status, code, SILENT.get(kind) or on_one_line(without_credentials(str(error)))
            )
    return None
