"""The settings of BM25 that an index stores: its parameters, and how texts become terms. Imports nothing heavy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from indexes.errors import IndexesError

if TYPE_CHECKING:
    from indexes.dtypes import Float64Array

TokenizerName: TypeAlias = Literal["words", "posts"]
TOKENIZERS: tuple[TokenizerName, ...] = get_args(TokenizerName)
STEMMED = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
# stemmed languages for which tantivy has no list of stop words
WITHOUT_STOP_WORDS = ("arabic", "greek", "romanian", "tamil", "turkish")
BIGRAMS = ("chinese", "japanese", "korean")
LANGUAGES = (*STEMMED, *BIGRAMS, "none")
LONGEST = 120  # maximum size in bytes of a word; anything longer is something else (base64, URLs)
VERSION = 2  # version of the analysis, recorded in an index; any other is refused
MOST_K1 = 1000.0
LONG_QUERY = 32  # terms in a query, above which k3 grows
WEIGHTS = (0.001, 1000.0)  # range of a field's weight
MOST_FIELDS = 32


@dataclass(frozen=True, slots=True)
class Field:
    """A field of BM25F: "title", "text", or the name of a metadata field.

    Term counts in the field are multiplied by `weight` (0 ignores the field); `b` is its length normalisation (None:
    the b of all fields). Raises IndexesError if a value is out of range.
    """

    name: str
    weight: float = 1.0
    b: float | None = None

    def __post_init__(self) -> None:
        name = self.name
        if (
            not name
            or name != name.strip()
            or len(name) > 255
            or not name.isprintable()
            or set(name) & set(",=")
        ):
            raise IndexesError(
                f"{name!r} is not a valid field name: use at most 255 printable characters without ',' and '='"
            )
        low, high = WEIGHTS
        if not (self.weight == 0 or low <= self.weight <= high):
            raise IndexesError(
                f"the weight of {name} is {self.weight}: it must be 0, or from {low:g} to {high:g}"
            )
        if self.b is not None and not 0 <= self.b <= 1:
            raise IndexesError(f"b of {name} is {self.b}: it must be a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class Bm25Parameters:
    """The parameters of BM25, which may differ per query.

    `k1` ≥ 0 says how slowly repetitions in a document saturate (0: only presence counts), `b` from 0 to 1 how much
    long documents are discounted, and `k3` ≥ 0 the same as `k1` for repetitions in a query: a term that occurs c
    times weighs (k3 + 1) · c / (k3 + c), so 0 counts each term once, and infinity each repetition. For a query of
    more than LONG_QUERY terms k3 grows in proportion to its length: repeated words in a post are emphasis, but if the
    query is a whole article, counts show its subject. `fields`: the fields of an index that was built with fields;
    empty otherwise. Raises IndexesError if a value is out of range or a field is repeated.
    """

    k1: float = 1.2
    b: float = 0.75
    k3: float = 1.0
    fields: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        for name, value, valid, expected in (
            ("k1", self.k1, 0 <= self.k1 <= MOST_K1, f"a number from 0 to {MOST_K1:g}"),
            ("b", self.b, 0 <= self.b <= 1, "a number from 0 to 1"),
            ("k3", self.k3, self.k3 >= 0, "a number ≥ 0, or inf (every repetition counts)"),
        ):
            if not valid:  # comparisons with NaN are false
                raise IndexesError(f"BM25's {name} is {value}: it must be {expected}")
        names = [field.name for field in self.fields]
        if len(set(names)) < len(names) or len(names) > MOST_FIELDS:
            raise IndexesError(f"expected at most {MOST_FIELDS} different fields, got {', '.join(names)}")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the parameters that `to_json` wrote. Raises IndexesError."""
        k3 = values["k3"]
        fields = tuple(Field(**field) for field in values.get("fields", ()))
        return cls(values["k1"], values["b"], math.inf if k3 is None else k3, fields)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values; an infinite k3 becomes null, and `fields` is left out if empty."""
        common = {"k1": self.k1, "b": self.b, "k3": None if math.isinf(self.k3) else self.k3}
        return common | ({"fields": [dataclasses.asdict(f) for f in self.fields]} if self.fields else {})

    def changed(self, k1: float | None = None, b: float | None = None, k3: float | None = None) -> Self:
        """Return a copy with the arguments that are not None in place of the old values. Raises IndexesError."""
        k1, b, k3 = (own if new is None else new for new, own in ((k1, self.k1), (b, self.b), (k3, self.k3)))
        return dataclasses.replace(self, k1=k1, b=b, k3=k3)

    def weighted(
        self, weights: Mapping[str, float] | None = None, b: Mapping[str, float] | None = None
    ) -> Self:
        """Return a copy with these fields' weights and b replaced. Raises IndexesError for an unknown field."""
        weights, b = weights or {}, b or {}
        names = [field.name for field in self.fields]
        if unknown := sorted((weights.keys() | b.keys()) - set(names)):
            has = f"its fields are {', '.join(names)}" if names else "build it with `fields`"
            raise IndexesError(f"the index has no field {unknown[0]!r}: {has}")
        fields = [Field(f.name, weights.get(f.name, f.weight), b.get(f.name, f.b)) for f in self.fields]
        return dataclasses.replace(self, fields=tuple(fields))

    def of_query(self, asked: Bm25Parameters) -> Bm25Parameters:
        """Return the parameters of a query, `asked`, with the index's fields if it names none. Raises IndexesError."""
        if asked.fields and not self.fields:
            raise IndexesError("the index has no fields, so none can have a weight: build it with `fields`")
        self.weighted({field.name: field.weight for field in asked.fields})
        fields = asked.fields or self.fields
        if fields and not any(field.weight for field in fields):
            raise IndexesError("every field has weight 0: give at least one a positive weight")
        return dataclasses.replace(asked, fields=fields)

    def query_weights(self, counts: Float64Array, lengths: Float64Array) -> Float64Array:
        """Return the weights [n] of terms that occur `counts` [n] times in queries of `lengths` [n] terms."""
        if math.isinf(self.k3):
            return counts
        k3 = self.k3 * (lengths / LONG_QUERY).clip(1.0)
        weights: Float64Array = (k3 + 1) * counts / (k3 + counts)
        return weights


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """How texts become terms. The settings of an index are fixed until it is rebuilt.

    `tokenizer`: "words" takes letters and digits, "posts" also recognises addresses, @handles, #hashtags and `_`.
    `stop_words`: whether stop words are also dropped from documents, as from queries. `min_token`: the shortest word,
    in characters. Raises IndexesError if a value is unknown.
    """

    language: str = "english"
    tokenizer: TokenizerName = "words"
    stop_words: bool = False
    min_token: int = 1
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise IndexesError(f"unknown language {self.language!r}: choose one of {', '.join(LANGUAGES)}")
        if self.tokenizer not in TOKENIZERS:
            raise IndexesError(f"unknown tokenizer {self.tokenizer!r}: choose one of {', '.join(TOKENIZERS)}")
        if self.stop_words and (self.language in WITHOUT_STOP_WORDS or self.language not in STEMMED):
            raise IndexesError(
                f"there is no list of stop words for {self.language!r}: leave out `stop_words`"
            )
        if not 1 <= self.min_token <= LONGEST:
            raise IndexesError(f"`min_token` is {self.min_token}: it must be from 1 to {LONGEST} characters")
        if self.version != VERSION:
            raise IndexesError(f"version {self.version} of the analysis is not supported: rebuild the index")

    @classmethod
    def of(cls, settings: str | AnalysisSettings) -> AnalysisSettings:
        """Return `settings`, or the default settings of a language. Raises IndexesError if the language is unknown."""
        return cls(settings) if isinstance(settings, str) else settings

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings that `to_json` wrote. Raises IndexesError."""
        return cls(**values)

    def to_json(self) -> dict[str, str | bool | int]:
        """Return the settings as JSON values."""
        return dataclasses.asdict(self)
