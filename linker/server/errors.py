"""What an error is to whoever asked: a status, a code for programs, and what is said of it; never a traceback.

The API answers with problem details, the page with a page in the reader's language.
"""

from __future__ import annotations

import http
import re
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from indexes import errors
from linker.base.errors import InputError, LinkerError
from linker.base.printable import on_one_line, without_credentials
from linker.review.interface import JudgedMeanwhileError
from linker.review.wording import message
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
# What the page says; of other errors, what they say of themselves.
TEXTS = {
    403: message("This form is too old, or it did not come from this page. Load the page again, and repeat."),
    404: message("There is no such page."),
    405: message("This address takes another kind of request."),
}
WRONG = message("This request cannot be understood: %(field)s.")
NOT_YOURS = message("Something went wrong here that is not your fault. Nothing that was judged is lost.")
MEANWHILE = message(
    "This document was judged meanwhile, in another window or by somebody else: your verdict was not stored. Look at "
    "the verdict that stands, and judge again if you see it otherwise."
)


class ProblemError(HTTPException):
    """An answer that is an error: its status, what is wrong and how to mend it, and a code for programs.

    `retry`: seconds after which the same request may succeed. `text`: what the page says instead, with `values`.
    `more`: further members of the answer of the API.
    """

    def __init__(
        self, status: int, detail: str, code: str, *, retry: int | None = None, text: str = "",
        values: Mapping[str, Any] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        # FastAPI lets no other exception out of the reading of a body
        super().__init__(status, detail, {} if retry is None else {"retry-after": str(retry)})
        self.code, self.retry, self.text, self.values, self.more = code, retry, text, dict(values or {}), more


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that an exception is to who asked; what is no error of its own says nothing of itself."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        status = error.status_code
        code = http.HTTPStatus(status).phrase.lower().replace(" ", "-")
        known = {404: "there is no such address", 405: "this address takes another method"}
        problem = ProblemError(status, known.get(status, str(error.detail)), code, text=TEXTS.get(status, ""))
        problem.headers = error.headers
        return problem
    for kind, (status, code) in KNOWN.items():
        if isinstance(error, kind):
            text = SILENT.get(kind) or on_one_line(without_credentials(str(error)))
            said = MEANWHILE if kind is JudgedMeanwhileError else ""
            return ProblemError(status, text, code, retry=1 if status == 503 else None, text=said)
    return ProblemError(500, OURS, "internal-error", text=NOT_YOURS)


def _invalid(error: RequestValidationError) -> ProblemError:
    """Return which fields are wrong and why, without the values that were sent."""
    found = [
        {"pointer": "/".join(map(_token, ("#", *each["loc"][1:]))), "detail": str(each["msg"])}
        for each in error.errors()
    ]
    fields = ", ".join(dict.fromkeys(str(each["loc"][-1]) for each in error.errors()))
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return ProblemError(400, "the body is not JSON", "not-json", text=WRONG, values={"field": fields})
    first = f"{found[0]['pointer']}: {found[0]['detail']}" if found else "it does not fit the description"
    said = f"the request cannot be understood: {first}"
    return ProblemError(422, said, "invalid-request", text=WRONG, values={"field": fields}, errors=found)


def _token(part: object) -> str:
    return re.sub("[\ud800-\udfff]", "�", str(part)).replace("~", "~0").replace("/", "~1")
