"""Error messages in the reader's words and without paths; the errors themselves are for logs and programs."""

from indexes.errors import Reason
from linker.base.printable import without_credentials
from linker.review.language import ReaderLanguage
from linker.review.wording import message

# The page's message for each cause of a reason; the reason's facts are the message's values.
REASONS = {
    "damaged": message("A file of this review is damaged. Whoever runs linker can restore it from a backup."),
    "wrong-width": message("The row has %(count)s cells, but there are %(wanted)s columns."),
    "no-text": message("The text is empty."),
    "no-column": message("There is no column %(names)s."),
    "empty-id": message("The id is empty."),
    "spaces-in-id": message("The id %(id)s contains spaces."),
    "not-text": message("The id, title or text is not a text."),
    "nul": message("The text contains a character that is not allowed."),
    "nested": message("A value is nested too deeply."),
    "too-long": message("The row is larger than 16 MB."),
    "not-utf8": message("Some letters cannot be read: choose another encoding."),
    "not-json": message("The line is not a JSON object."),
    "quotation-mark": message("A quotation mark is missing or in the wrong place."),
    "old-workbook": message(
        "%(name)s is in Excel’s old format (.xls) or has a password: save it as .xlsx without one, or as .csv."
    ),
    "no-records": message("%(name)s contains no rows that can be read."),
    "empty-file": message("%(name)s is empty."),
    "other-kind": message("%(name)s cannot be read: save the table as XLSX, CSV, TSV or JSON Lines."),
    "damaged-workbook": message("%(name)s is damaged: save it again as .xlsx, or as .csv."),
    "disk-full": message(
        "The disk of the machine that runs linker is full. What was stored before is intact: free some space there, "
        "and repeat."
    ),
    "not-allowed": message(
        "linker may not read or write its files on the machine that runs it. Whoever runs linker can allow it; then "
        "repeat."
    ),
    "disk-faulty": message(
        "The disk of the machine that runs linker cannot be read or written: it may be faulty."
    ),
    "busy": message("Somebody else is writing to this review just now. Wait a moment, and repeat."),
    "replaced": message(
        "This review was deleted or replaced meanwhile: nothing was stored. Open the review again."
    ),
    "not-installed": message("Something that this needs is not installed on the machine that runs linker."),
    "repeated-id": message(
        "An earlier row has the id %(id)s, and only that row is used. Choose a column whose values differ, or have "
        "ids made."
    ),
    "small-map": message("A map needs at least %(least)s documents; there are %(count)s."),
    "no-map": message("The documents have too few words in common for a map."),
    "killed": message(
        "The machine that runs linker ended this, perhaps because memory ran out. Try again with fewer texts."
    ),
    "ended": message("This ended before it was done, and left nothing behind. Try again."),
    "being-done": message("This is already running: wait for it to end, or cancel it."),
    "being-read": message("The files are being read: wait for the end, or cancel it."),
    "was-read": message("%(name)s has been read into the review: only the whole review can be deleted."),
    "gone": message(
        "What this was about is no longer in the review: nothing was stored. Load the page again."
    ),
    "is-seed": message("This is a seed itself, or a filter leaves it out: nothing was stored."),
    "bad-name": message("The name of a review has 1 to %(most)s characters: choose another one."),
    "chosen-twice": message("The column %(name)s is chosen twice: choose a different one for each field."),
}


def explain(reason: str, language: ReaderLanguage) -> str:
    """Return a `Reason` or a message in the language of the page, and any other text unchanged."""
    if isinstance(reason, Reason) and (said := REASONS.get(reason.cause)):
        return language.text(said, **reason.facts)
    return without_credentials(language.text(reason)) if reason else ""
