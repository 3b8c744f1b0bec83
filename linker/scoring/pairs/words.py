"""Words of texts in any script: Chinese and Japanese, which are written without spaces, are split by characters."""

import math
import re
from collections import Counter
from itertools import islice

HAN_KANA = "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
RUN = re.compile(f"[{HAN_KANA}]+")
# One word: the characters between spaces or, in a run of Han or kana, up to two characters with the punctuation after
# them, since most Chinese words have one or two characters.
_WORD = re.compile(rf"[{HAN_KANA}]{{1,2}}[^\w\s]*|[^\s{HAN_KANA}]+")
RUN_OR_LETTERS = re.compile(rf"[{HAN_KANA}]+|[^\W\d_{HAN_KANA}]+")  # units that a dictionary translates
# A word or, in scripts that are written without spaces between words (Chinese, Japanese, Thai …), a character.
CHARACTER_OR_WORD = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def lower_words(text: str) -> list[str]:
    """Return the words of a text, lower-cased; in scripts without spaces, its characters."""
    return CHARACTER_OR_WORD.findall(text.lower())


def count_cosine(a: Counter[str], b: Counter[str]) -> float:
    """Return the cosine of two counts, 0 if either is empty."""
    dot = sum(count * b[token] for token, count in a.items())
    squares = sum(n * n for n in a.values()) * sum(n * n for n in b.values())
    return dot / math.sqrt(squares) if dot else 0.0


def count_words(text: str) -> int:
    """Return the number of words."""
    return sum(1 for _ in _WORD.finditer(text))


def first_words(text: str, count: int) -> str:
    """Return the first `count` (at least 1) words of the text, with single spaces."""
    last = next(islice(_WORD.finditer(text), count - 1, None), None)
    return " ".join((text[: last.end()] if last else text).split())


def spaced(text: str) -> str:
    """Return the text with each run of Han and kana replaced by its overlapping character pairs, separated by spaces.

    Code that splits at spaces then finds words there, too: 国家统计 becomes 国家 家统 统计.
    """
    return RUN.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    pairs = (characters[i : i + 2] for i in range(max(1, len(characters) - 1)))
    return f" {' '.join(pairs)} "
