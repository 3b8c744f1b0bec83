"""What went wrong, in the reader's words and without paths; errors themselves are for logs, terminals and programs."""

from __future__ import annotations

import re

from linker.review.language import Language
from linker.review.wording import message

FULL = message(
    "The disk of the machine that runs linker is full. What was stored before is intact: free some space there, and "
    "repeat."
)
CLOSED = message(
    "linker may not read or write its files on the machine that runs it. Whoever runs linker can allow it; then repeat."
)
FAULTY = message("The disk of the machine that runs linker cannot be read or written: it may be faulty.")
DAMAGED = message("A file of this review is damaged. Whoever runs linker can restore it from a backup.")
BUSY = message("Somebody else is writing to this review just now. Wait a moment, and repeat.")
GONE = message("What this was about is no longer in the review: nothing was stored. Load the page again.")
MISSING = message("Something that this needs is not installed on the machine that runs linker.")
# What went wrong, as a pattern, and what the page says; groups of the pattern are the message's values.
REASONS = (
    (r".*(?:restore it from a backup|it is damaged; restore|differs from its checksum).*", DAMAGED),
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
        r"(?P<name>.+) is not an XLSX workbook .*",
        message("%(name)s is damaged: save it again as .xlsx, or as .csv."),
    ),
    # The machine last: its errors hold paths, which may look like anything.
    (r".*(?:No space left|disk is full|quota exceeded|disk full).*", FULL),
    (
        r".*(?:Permission denied|Read-only file system|Operation not permitted|readonly database|unable to open"
        r" database).*",
        CLOSED,
    ),
    (r".*(?:disk I/O error|Input/output error).*", FAULTY),
    (r".*(?:is writing to|has been writing for).*", BUSY),
    (
        r"the ledger .+ was deleted or replaced .*",
        message("This review was deleted or replaced meanwhile: nothing was stored. Open the review again."),
    ),
    (r".* needs the extra '[\w-]+': .*|.+ is not installed.*", MISSING),
    (
        r"(?P<name>.+): the id '(?P<id>.+)' appears twice: .*",
        message("%(name)s: the id %(id)s appears twice. Choose a column whose values differ, or have ids made."),
    ),
    (
        r".* has (?P<count>\d+) documents: a map needs at least (?P<least>\d+)",
        message("A map needs at least %(least)s documents; there are %(count)s."),
    ),
    (r"the documents share .*, so that no map .*", message("The documents have too few words in common for a map.")),
    (
        r"the job ended with status -9.*",
        message("The machine that runs linker ended this, perhaps for want of memory. Try again with fewer texts."),
    ),
    (
        r"the job (?:ended with status|could not be started).*",
        message("This ended before it was done, and left nothing behind. Try again."),
    ),
    (r"this is being done already: .*", message("This is being done already: wait for its end, or cancel it.")),
    (r"the files are being indexed: .*", message("The files are being read: wait for the end, or cancel it.")),
    (
        r"(?P<name>.+) is indexed: only .*",
        message("%(name)s has been read into the review: only the whole review can be deleted."),
    ),
    (r"(?:this review has no (?:row|seed|file)|'.+' is not in the index|the document '.+' is not in) .*", GONE),
    (r".+ is a seed itself, or .*", message("This is a seed itself, or a filter leaves it out: nothing was stored.")),
    (
        r"a review's name has 1 to (?P<most>\d+) characters.*",
        message("The name of a review has 1 to %(most)s characters: choose another one."),
    ),
    (
        r"the column '(?P<name>.+)' is chosen twice: .*",
        message("The column %(name)s is chosen twice: choose one for each thing."),
    ),
)  # fmt: skip


def explain(reason: object, language: Language) -> str:
    """Return a reason or an error in the language of the page; what is not in the table stays as it is."""
    text = str(reason)
    for pattern, said in REASONS:
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return language.text(said, **found.groupdict()) if found.groupdict() else language.text(said)
    return text
