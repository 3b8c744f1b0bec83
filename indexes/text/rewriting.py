"""Rewriting a text before it is split into words: numbers become one word each, and marks in posts are interpreted.

Every rule looks only at characters between two of `analysis.py`'s separators, so it can be applied to a whole text or
to each of its pieces.
"""

import re
from collections.abc import Callable

# Languages that write 3,5 and 4.250; the others write 3.5 and 4,250.
DECIMAL_COMMA = (
    "danish", "dutch", "finnish", "french", "german", "greek", "hungarian", "italian", "norwegian", "portuguese",
    "romanian", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip
# stands for a decimal point within a term: a letter that looks like a point, so that no tokenizer splits there
POINT = "\ua78f"
RUN = re.compile(r"[0-9]+(?:[.,][0-9]+)+")
DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")

CONTROL = r"\x00-\x20\x7f"
# Letters, digits and _, with the combining marks of scripts whose words need them.
WORD = r"[\w\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e]+"
MARKED = re.compile(
    rf"\b(?:https?://|www\.|(?:[a-z0-9-]{{1,63}}\.){{1,4}}[a-z]{{2,24}}/)[^\s{CONTROL}\"<>]*|[@#]{WORD}",
    re.IGNORECASE,
)


def whole_numbers(language: str) -> Callable[[str], str]:
    """Return a function that turns each number of a text in `language` into one word: 4,250 becomes 4250.

    Points and commas that do not form one number (1.2.3, 12.05.2021) still separate words.
    """
    groups, decimals = (r"\.", ",") if language in DECIMAL_COMMA else (",", r"\.")
    # The last two alternatives are the other convention, if the number is unambiguous: 1.234.567 or 1.234,5.
    grouped = re.compile(
        rf"([1-9][0-9]{{0,2}}(?:{groups}[0-9]{{3}})+)(?:{decimals}([0-9]+))?"
        rf"|([1-9][0-9]{{0,2}}(?:{decimals}[0-9]{{3}}){{2,}})"
        rf"|([1-9][0-9]{{0,2}}(?:{decimals}[0-9]{{3}})+){groups}([0-9]+)"
    )

    def one_word(run: re.Match[str]) -> str:
        if found := grouped.fullmatch(run[0]):
            whole, fraction = found[1] or found[3] or found[4], found[2] or found[5]
            digits = whole.replace(",", "").replace(".", "")
            return f"{digits}{POINT}{fraction}" if fraction else digits
        if DECIMAL.fullmatch(run[0]):
            return run[0].replace(",", POINT).replace(".", POINT)
        return run[0]

    return lambda text: RUN.sub(one_word, text)


def without_marks(text: str) -> str:
    """Return a post's text without URLs, and with the words of each @handle and #hashtag inserted after it."""
    return MARKED.sub(_read, text)


def _read(mark: re.Match[str]) -> str:
    tag = mark[0]
    if tag[0] not in "@#":
        return " "
    return f" {tag} {' '.join(words_of(tag[1:]))} "


def words_of(tag: str) -> list[str]:
    """Return the words of a hashtag or handle: ClimateChange_2021 has Climate, Change and 2021."""
    words: list[str] = []
    for part in tag.split("_"):
        start = 0
        for at in range(1, len(part)):
            if _begins(part, at):
                words.append(part[start:at])
                start = at
        words.append(part[start:])
    return [word for word in words if word]


def _begins(part: str, at: int) -> bool:
    """Return whether a word begins here: before a capital after a lower-case letter, and where digits begin or end.

    The last of several capitals begins the word of the lower-case letters after it: USElection has US and Election.
    """
    before, here, after = part[at - 1], part[at], part[at + 1 : at + 2]
    if before.isdigit() != here.isdigit():
        return True
    return here.isupper() and (before.islower() or (before.isupper() and after.islower()))
