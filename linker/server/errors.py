"""Errors as HTTP responses, by the register of errors: each has a text for programs and one for readers, never a
traceback."""

import http
import re
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from linker.review.wording import message
from linker.server.register import OURS, known

# The page's messages, by status; errors of the register have messages of their own.
TEXTS = {
    403: message("This form is too old, or it did not come from this page. Load the page again, and repeat."),
    404: message("There is no such page."),
    405: message("This address does not accept this kind of request."),
}
WRONG = message("This request cannot be understood: %(field)s.")
NOT_YOURS = message("Something went wrong here that is not your fault. Nothing that was judged is lost.")
MEANWHILE = message(
    "This document was judged meanwhile, in another window or by somebody else: your verdict was not stored. Look at "
    "the verdict that stands, and judge again if you disagree."
)


class ProblemError(HTTPException):
    """An error response: its status, what is wrong and how to fix it (`detail`), and a code for programs.

    `retry`: seconds after which the same request may succeed. `text`: the message that the page shows instead, with
    `values` filled in. `more`: further members of the API's problem texts.
    """

    def __init__(
        self, status: int, detail: str, code: str, *, retry: int | None = None, text: str = "",
        values: Mapping[str, Any] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        # the only kind of exception that FastAPI lets through while it reads a body
        super().__init__(status, detail, {} if retry is None else {"retry-after": str(retry)})
        self.code, self.retry, self.text, self.values, self.more = code, retry, text, dict(values or {}), more


def problem_of(error: Exception) -> ProblemError:
    """Return an exception as a problem for the client; that of an unknown exception reveals nothing."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        status = error.status_code
        code = http.HTTPStatus(status).phrase.lower().replace(" ", "-")
        texts = {404: "there is no such address", 405: "this address does not accept this method"}
        problem = ProblemError(status, texts.get(status, str(error.detail)), code, text=TEXTS.get(status, ""))
        problem.headers = error.headers
        return problem
    if entry := known(error):
        retry = 1 if entry.status == 503 else None
        meanwhile = MEANWHILE if entry.code == "judged-meanwhile" else ""
        return ProblemError(entry.status, entry.text, entry.code, retry=retry, text=meanwhile)
    return ProblemError(500, OURS, "internal-error", text=NOT_YOURS)


def _invalid(error: RequestValidationError) -> ProblemError:
    """Return which fields are wrong and why, without the values sent."""
    wrong = [
        {"pointer": "/".join(map(_token, ("#", *each["loc"][1:]))), "detail": str(each["msg"])}
        for each in error.errors()
    ]
    fields = ", ".join(dict.fromkeys(str(each["loc"][-1]) for each in error.errors()))
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return ProblemError(400, "the body is not JSON", "not-json", text=WRONG, values={"field": fields})
    first = f"{wrong[0]['pointer']}: {wrong[0]['detail']}" if wrong else "it does not match the description"
    detail = f"the request is invalid: {first}"
    return ProblemError(422, detail, "invalid-request", text=WRONG, values={"field": fields}, errors=wrong)


def _token(part: object) -> str:
    return re.sub("[\ud800-\udfff]", "�", str(part)).replace("~", "~0").replace("/", "~1")
