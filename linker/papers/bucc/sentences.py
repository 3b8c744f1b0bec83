"""The first sentence of a page, which usually defines its title."""

import re
from itertools import pairwise

from linker.crosslingual.aligned.units import segmenter

# Marks that end a sentence, and the quotes and brackets that may follow them.
_END = re.compile(r"[.!?…。！？．｡۔؟।॥։።။།។][\"'”’»›)\]）」』】]*\s*$")
# An initial such as "M." or "A. S.": the next word belongs to it.
_INITIAL = re.compile(r"(?:^|[\s(\xa0])[^\W\d_]\.\s*$")
# A word of up to four letters: if it is a single letter or in lower case, and the next word is not capitalised, it
# counts as an abbreviation.
_SHORT = re.compile(r"(?:^|[\s(.-])([^\W\d_]{1,4})\.\s*$")
_CONTINUES = re.compile(r"\s*[-‐–,;:)\]）]")
WITHOUT_STOPS = frozenset({"lo", "th"})  # written without full stops: the first line counts as the sentence
LONGEST = 4000  # characters of a line that are searched for its first sentence


def without_first_sentence(text: str, code: str) -> str:
    """Return the text after its first complete sentence in the language `code`; nothing if there is none.

    Lines before it, such as a title, are removed as well. sentencex finds the sentences: it knows abbreviations,
    numbers and file names of about 300 languages. Pieces are rejoined after an initial, and after a short word before
    a lower-case word. Raises MissingExtraError without the extra 'crosslingual'.
    """
    start = 0
    for line in text.splitlines(keepends=True):
        length = _first_sentence(line[:LONGEST], code)
        if length or (code.partition("-")[0] in WITHOUT_STOPS and line.strip()):
            return text[start + (length or len(line)) :].strip()
        start += len(line)
    return ""


def after_first_stop(text: str, code: str) -> str:
    """Return what follows the first full stop, even an abbreviation's, as BUCC's authors did; nothing if none."""
    _, _, rest = text.partition("。" if code.partition("-")[0] == "zh" else ".")
    return rest.strip()


def _first_sentence(line: str, code: str) -> int:
    """Return the length of a line's first sentence; 0 if no sentence ends in the line."""
    if not line.strip():
        return 0
    ends, length = [], 0
    for piece, following in pairwise([*segmenter()(code, line), ""]):
        length += len(piece)
        if _END.search(piece):
            if not _continues(line[:length], following):
                return length
            ends.append(length)
    return ends[0] if ends else 0


def _continues(sentence: str, following: str) -> bool:
    """Return whether a sentence continues after a mark that looks like its end."""
    if not following.strip():
        return False
    word = match[1] if (match := _SHORT.search(sentence)) else ""
    abbreviated = (word.islower() or len(word) == 1) and not following.lstrip()[0].isupper()
    return bool(abbreviated or _INITIAL.search(sentence) or _CONTINUES.match(following))
