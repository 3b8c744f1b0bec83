"""Stores results of a grouping for the next one: findings, languages, the words of groups, and members' passages."""

import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import orjson
import xxhash

from indexes.dtypes import AnyArray, Int64Array
from indexes.interface import Document
from linker.base.files import write_atomically
from linker.base.logs import logger
from linker.scoring.groups.evidence import Findings
from linker.scoring.groups.finding import Known

# if a larger share of the documents has come or gone, all are queried again, since idf has changed
CHANGED = 1.0
DAMAGE = (OSError, ValueError, KeyError, IndexError, TypeError, zipfile.BadZipFile, EOFError)
ARRAYS = ("one", "other", "values", "last")

Span = tuple[int, int]
# (document, other text) → the document's passage that concerns the other text; None: no passage
Spans = dict[tuple[int, int], Span | None]
Words = dict[int, tuple[str, ...]]  # words of a group, by its documents


class LastGrouping:
    """What the last grouping found out about documents, in one self-contained file.

    A document is identified by its `key`, a hash of its id and text. `full`: enough documents have come or gone that
    all of them should be queried again. Languages, words of groups and passages that are not used again are dropped.
    """

    def __init__(
        self, path: Path, documents: Iterable[Document], since: tuple[Sequence[str], Findings] | None = None
    ) -> None:
        """`since`: more recent results than the file's, if the caller has any: ids, and which documents found which."""
        self._path = path
        self.key = {d.id: key_of(d) for d in documents}
        self._known_spans, self._spans = Spans(), Spans()
        self._known_words, self._words = Words(), Words()
        self._known_languages, self._languages = dict[int, str](), dict[int, str]()
        self._origin, self._taken, self._changed = "", 0, 0
        self._keys = np.empty(0, np.uint64)
        self._findings = self._read() if path.exists() else None
        keys = np.fromiter(self.key.values(), np.uint64, len(self.key))
        self._changed += len(np.setxor1d(keys, self._keys, assume_unique=True))
        self.full = self._findings is None or self._changed > CHANGED * self._taken
        if self.full:
            self._known_spans, self._known_words = {}, {}
        elif since and all(id_ in self.key for id_ in since[0]):
            self.take(since[0], self._origin, since[1], full=False)

    def _read(self) -> Findings | None:
        try:
            return self._arrays()
        except DAMAGE:
            logger.warning("%s is damaged: all documents are compared again", self._path)
            return None

    def _arrays(self) -> Findings:
        with self._path.open("rb") as file, np.load(file, allow_pickle=False) as state:
            self._origin = str(state["origin"])
            self._taken, self._changed = state["counts"].tolist()
            self._keys = state["keys"]
            findings = Findings(*(state[name] for name in ARRAYS))
            spans = zip(state["of"].tolist(), state["spans"].tolist(), strict=True)
            self._known_spans = {
                (a, b): (start, end) if start >= 0 else None for (a, b), (start, end) in spans
            }
            self._known_words = {key: tuple(words) for key, words in orjson.loads(state["words"].tobytes())}
            names = state["languages"].astype(str).tolist()
            self._known_languages = dict(zip(state["spoken"].tolist(), names, strict=True))
        sizes = {len(getattr(findings, name)) for name in ARRAYS}
        ends = np.concatenate([findings.one, findings.other])
        if len(sizes) > 1 or not ((ends >= 0) & (ends < len(self._keys))).all():
            raise ValueError("its arrays do not belong together")
        return findings

    def restore(self, ids: Sequence[str], origin: str) -> Known | None:
        """Return what is known about n documents, numbered as in `ids`; None if all of them have to be queried.

        New documents are queried, and so are those whose last candidate is gone, since others may take its place.
        """
        if self._findings is None or self.full or origin != self._origin:
            return None
        position = self._places(ids)
        findings = self._findings
        one, other = position[findings.one], position[findings.other]
        queried = np.ones(len(ids), bool)
        queried[position[position >= 0]] = False
        queried[one[(one >= 0) & (other < 0) & findings.last]] = True
        here = (one >= 0) & (other >= 0)
        return Findings(one[here], other[here], findings.values[here], findings.last[here]), queried

    def _places(self, ids: Sequence[str]) -> Int64Array:
        """Return the number of each kept document in `ids`, int64, −1 if it is gone."""
        keys = np.array([self.key[id_] for id_ in ids], np.uint64)
        order = np.argsort(keys)
        at = order[np.minimum(np.searchsorted(keys, self._keys, sorter=order), len(keys) - 1)]
        return np.where(keys[at] == self._keys, at, -1)

    def words_of(self, ids: Sequence[str], make: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the words of a group, from `make` if they are not stored; the first of its `ids` represents it."""
        key = xxhash.xxh3_64_intdigest(np.array([self.key[id_] for id_ in ids], np.uint64).tobytes())
        words = self._words[key] = self._known_words[key] if key in self._known_words else make()
        return words

    def language_of(self, id_: str, make: Callable[[], str]) -> str:
        """Return the language of a document, detected by `make` if it is not stored."""
        key, known = self.key[id_], self._known_languages
        name = self._languages[key] = known[key] if key in known else make()
        return name

    def span_of(self, id_: str, by: str, make: Callable[[], Span | None]) -> Span | None:
        """Return the passage of a document that is about another text, computed by `make` if it is not stored."""
        pair = (self.key[id_], self.key[by])
        span = self._spans[pair] = self._known_spans[pair] if pair in self._known_spans else make()
        return span

    def take(self, ids: Sequence[str], origin: str, findings: Findings, *, full: bool) -> None:
        """Store the findings of all documents; `full`: all of them were queried."""
        if full:
            self._taken, self._changed, self.full = len(ids), 0, False
        self._keys = np.array([self.key[id_] for id_ in ids], np.uint64)
        self._origin, self._findings = origin, findings

    def save(self) -> None:
        """Write the file; after a crash, it is either the earlier one or this one, complete."""
        assert self._findings is not None
        arrays: dict[str, AnyArray] = {
            "origin": np.array(self._origin),
            "counts": np.array([self._taken, self._changed]),
            "keys": self._keys,
            "of": np.array(list(self._spans), np.uint64).reshape(-1, 2),
            "spans": np.array([span or (-1, -1) for span in self._spans.values()], np.int64).reshape(-1, 2),
            "spoken": np.array(list(self._languages), np.uint64),
            "languages": np.array(list(self._languages.values()), np.bytes_),
            "words": np.frombuffer(orjson.dumps([*self._words.items()]), np.uint8),
            **{name: getattr(self._findings, name) for name in ARRAYS},
        }
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_atomically(self._path, buffer.getvalue())


def key_of(document: Document) -> int:
    """Return a hash of a document's id and text."""
    text = f"{document.id}\0{document.title}\0{document.text}"
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
