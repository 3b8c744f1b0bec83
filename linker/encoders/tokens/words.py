"""Split news and tweets into words, and map them to ids with a vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import orjson

from linker.base.errors import InputError

PAD, UNK = 0, 1
SPECIALS = ("<pad>", "<unk>")
URL = "<url>"

# Scripts written without spaces, whose characters are each a token: kana, Han with its extensions, compatibility forms.
_SINGLE = "\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Marks inside words that \w leaves out: combining accents, Hebrew and Arabic points, Indic and Thai vowel signs.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
)
_LETTER = f"(?:[^\\W{_SINGLE}]|[{_MARKS}])"
_TOKEN = re.compile(
    "|".join(
        [
            r"(?:https?://|www\.|pic\.twitter\.com/)\S+|<url>",
            rf"[@#]{_LETTER}+",
            r"(?:[^\W\d_]\.){2,}",  # u.s., e.g.
            rf"\d+(?:[.,:]\d+)+{_LETTER}*",  # 1,650 and 8.30 and 1.13bn
            rf"{_LETTER}+(?:'{_LETTER}+)*",
            f"[{_SINGLE}]",
            "[\u2600-\u27bf\U0001f300-\U0001faff]",  # pictographs
        ]
    )
)
_URL_START = ("http://", "https://", "www.", "pic.twitter.com/")


def tokenize(text: str) -> list[str]:
    """Return the lower-case tokens of a text (NFKC): words, numbers, @mentions, #hashtags, pictographs.

    Words keep their apostrophes ("don't"), abbreviations their full stops ("u.s."); a URL becomes "<url>"; each
    character of Han and kana is a token; other punctuation is dropped.
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    tokens: list[str] = _TOKEN.findall(text)
    if "://" in text or "www." in text or "pic.twitter.com/" in text:
        return [URL if token.startswith(_URL_START) else token for token in tokens]
    return tokens


@runtime_checkable
class Tokenizer(Protocol):
    """Turns text into ids below `size`; id 0 is padding, which no text produces."""

    @property
    def size(self) -> int:
        """Number of ids, including padding: the rows of an embedding."""
        ...

    def encode_batch(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Return the first `max_length` ids of each text; unpadded, empty for a text without tokens."""
        ...

    def tokens(self, text: str, max_length: int) -> list[str]:
        """Return the tokens behind the ids of one text, for people to read."""
        ...

    def to_bytes(self) -> bytes:
        """Return the content of a file for `load_tokenizer`; equal tokenizers give equal bytes."""
        ...


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id: 0 is padding, 1 stands for every unknown token."""

    tokens: tuple[str, ...] = SPECIALS

    def __post_init__(self) -> None:
        if self.tokens[:2] != SPECIALS or len(self.ids) != len(self.tokens):
            raise InputError(f"a vocabulary begins with {', '.join(SPECIALS)} and names no token twice")

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The id of each token."""
        return {token: i for i, token in enumerate(self.tokens)}

    @classmethod
    def of(cls, tokens: Iterable[str]) -> Vocabulary:
        """Return a vocabulary that numbers `tokens` from 2 in the given order; repeated and special ones count once."""
        return cls(tuple(dict.fromkeys((*SPECIALS, *tokens))))

    @classmethod
    def build(cls, texts: Iterable[str], *, min_count: int = 1, max_size: int | None = None) -> Vocabulary:
        """Return the vocabulary of tokens that occur `min_count` times or more, the most frequent first.

        Ties are in order of code point. `max_size` limits the number of ids, including the two special ones.
        """
        return cls.of_counts(Counter(t for text in texts for t in tokenize(text)), min_count, max_size)

    @classmethod
    def of_counts(
        cls, counts: Mapping[str, int], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """Return the vocabulary as `build` does, from the tokens' counts."""
        order = sorted((-n, token) for token, n in counts.items() if n >= min_count)
        first = order if max_size is None else order[: max(max_size - len(SPECIALS), 0)]
        return cls.of(token for _, token in first)

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the tokens' ids; UNK for unknown ones and for words that look like a special token."""
        get = self.ids.get
        return [get(token, UNK) or UNK for token in tokens]


@dataclass(frozen=True)
class WordTokenizer:
    """Splits texts by `tokenize` and maps the words to the ids of a vocabulary."""

    vocabulary: Vocabulary

    @property
    def size(self) -> int:
        """Number of ids, including padding."""
        return len(self.vocabulary)

    def encode_batch(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Return the first `max_length` ids of each text; unknown words become UNK."""
        return [self.vocabulary.encode(tokenize(text)[:max_length]) for text in texts]

    def tokens(self, text: str, max_length: int) -> list[str]:
        """Return the tokens behind the ids of one text, including unknown ones."""
        return tokenize(text)[:max_length]

    def to_bytes(self) -> bytes:
        """Return a JSON object: type "words" and the tokens in the order of their ids."""
        return orjson.dumps(
            {"type": "words", "tokens": self.vocabulary.tokens}, option=orjson.OPT_APPEND_NEWLINE
        )
