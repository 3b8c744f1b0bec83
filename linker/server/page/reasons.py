"""Why a row or a file cannot be used, in the reader's words; the readers of files say it for logs and programs."""

from __future__ import annotations

import re

from linker.review.language import Language
from linker.server.page.rendering import message

# What `linker.corpora` says, as a pattern, and what the page says; groups of the pattern are the message's values.
REASONS = (
    (
        r"(?P<count>\d+) fields, expected (?P<wanted>\d+): .*",
        message("The row has %(count)s cells, but there are %(wanted)s columns."),
    ),
    (r"no text: .* are empty", message("The text is empty.")),
    (r"no \w+: no field (?P<names>.+) among .*", message("There is no column %(names)s.")),
    (r"empty id", message("The id is empty.")),
    (r"id (?P<id>.+) holds white space .*", message("The id %(id)s contains spaces.")),
    (r"(?:id .+|the \w+) is \w+, not a string", message("The id, title or text is not a text.")),
    (r"a NUL character .*", message("The text contains a character that no text can have.")),
    (r"metadata nested .*", message("A value is nested too deeply.")),
    (r"[\d,]+ bytes, more than .*", message("The row is larger than 16 MB.")),
    (r"invalid UTF-8", message("Some letters cannot be read: choose another encoding.")),
    (r"not JSON: .*|a JSON \w+, not an object.*", message("The line is not a JSON object.")),
    (r".* expected after .*|unexpected end of data", message("A quotation mark is missing or in the wrong place.")),
    (
        r"(?P<name>.+) is a workbook of old Excel .*",
        message(
            "%(name)s is in Excel’s old format (.xls) or has a password: save it as .xlsx without one, or as .csv."
        ),
    ),
    (r"(?P<name>.+) holds no records .*", message("%(name)s contains no rows that can be read.")),
    (r"(?P<name>.+) is empty(?:: .*)?", message("%(name)s is empty.")),
    (
        r"(?P<name>.+): linker reads CSV, .*",
        message("%(name)s cannot be read: save the table as XLSX, CSV, TSV or JSON Lines."),
    ),
    (
        r"(?P<name>.+) is no XLSX workbook .*",
        message("%(name)s is damaged: save it again as .xlsx, or as .csv."),
    ),
)  # fmt: skip


def explain(reason: object, language: Language) -> str:
    """Return a reason in the language of the page; what is not in the table stays as it is."""
    text = str(reason)
    for pattern, said in REASONS:
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return language.text(said, **found.groupdict()) if found.groupdict() else language.text(said)
    return text
