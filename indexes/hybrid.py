"""Fuses a vector and a text retriever; if one is unavailable, the other answers alone, and the answer says so."""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from indexes.dtypes import Float64Array
from indexes.fusion import Fusion, Ranking, fuse
from indexes.interface import (
    BackendUnavailableError,
    Filter,
    Hits,
    IndexesError,
    Matrix,
    RowArray,
    RowSearch,
    ScoreArray,
)
from indexes.rows import Rows
from indexes.showing import SHOWN, brief, table
from indexes.text.parameters import Bm25Parameters
from indexes.text.search import TextSearch

Mode = Literal["hybrid", "dense", "bm25"]
OnFailure = Literal["degrade", "fail"]
Embed = Callable[[Sequence[str]], Matrix]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of a search.

    `depth`: how many candidates each retriever returns for fusion. `on_failure`: if a retriever is down in hybrid
    mode, "degrade" lets the other one answer alone, and "fail" raises.
    """

    mode: Mode = "hybrid"
    fusion: Fusion = field(default_factory=Fusion)
    depth: int = 100
    on_failure: OnFailure = "degrade"


@dataclass(frozen=True, slots=True)
class Answer:
    """One Hits per query, the mode of the search, and whether the hits were reranked.

    `degraded` names the unavailable retriever and why, if there is one; `ranker` the learned ranker that ordered the
    hits, if one did; `calibration` the source of their P(link), if it is known. Each of `notes` says how texts were
    interpreted, or why not to trust the answer.
    """

    hits: list[Hits]
    mode: Mode
    degraded: str = ""
    reranked: bool = False
    ranker: str = ""
    calibration: str = ""
    notes: tuple[str, ...] = ()

    @property
    def no_match(self) -> tuple[float, ...]:
        """The `no_match` of each query; empty unless a learned ranker ordered the hits."""
        return tuple(hits.no_match for hits in self.hits if hits.no_match is not None)

    @property
    def probabilities(self) -> tuple[Float64Array, ...] | None:
        """P(link) of each hit, one array per query, NaN if it is not known; None without a calibration."""
        known = tuple(hits.probabilities for hits in self.hits if hits.probabilities is not None)
        return known if self.calibration and len(known) == len(self.hits) else None

    def __repr__(self) -> str:
        return f"<Answer by {self._how()}: {brief([repr(hits) for hits in self.hits], 3)}>"

    def _repr_html_(self) -> str:
        remarks = [f"degraded: {self.degraded}"] if self.degraded else []
        if len(self.hits) > SHOWN:
            remarks.append(f"{SHOWN} of {len(self.hits)} queries")
        head = table([], caption="; ".join([self._how(), *remarks, *self.notes]))
        return head + "".join(hits._repr_html_() for hits in self.hits[:SHOWN])

    def _how(self) -> str:
        ranker = f", {self.ranker}" if self.ranker else ", reranked" if self.reranked else ""
        return f"{self.mode}{ranker}"


def by_filter(
    find: Callable[[Sequence[str], Filter | None], Answer],
    texts: Sequence[str],
    filters: Sequence[Filter | None],
) -> Answer:
    """Return the answer to texts with one filter each; texts with the same filter are passed to one call of `find`."""
    groups: dict[Filter | None, list[int]] = {}
    for number, where in enumerate(filters):
        groups.setdefault(where, []).append(number)
    answers = [find([texts[n] for n in numbers], where) for where, numbers in groups.items()]
    order = np.argsort([n for numbers in groups.values() for n in numbers]).tolist()
    answer = joined(answers)
    return replace(answer, hits=[answer.hits[n] for n in order])


def joined(answers: Sequence[Answer]) -> Answer:
    """Return the answers to parts of the texts as one; if a part is degraded, the whole is marked as degraded."""
    whole = next((answer for answer in answers if answer.degraded), answers[0])
    hits = [one for answer in answers for one in answer.hits]
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    return replace(whole, hits=hits, notes=notes)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A retriever that exists but cannot answer now, and why."""

    error: BackendUnavailableError

    def search_rows(
        self, queries: Any, k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Raise `error`, a BackendUnavailableError."""
        raise self.error


class HybridIndex:
    """Fuses two retrievers with the same row numbers; either may be None."""

    def __init__(
        self,
        rows: Rows,
        vectors: RowSearch | None,
        text: TextSearch | None,
        settings: SearchSettings | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """With `at_once`, a hybrid search queries both concurrently, for retrievers that wait for a server."""
        self.rows, self.vectors, self.text, self._at_once = rows, vectors, text, at_once
        self.settings = settings or SearchSettings()

    def with_text(self, text: TextSearch | None) -> Self:
        """Return the same index with another text retriever over the same rows."""
        new = copy.copy(self)
        new.text = text
        return new

    def __len__(self) -> int:
        return len(self.rows)

    def search(
        self,
        texts: Sequence[str],
        k: int,
        *,
        embed: Embed | None = None,
        mode: Mode | None = None,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> Answer:
        """Return the top k documents for each text.

        `bm25` replaces the index's BM25 parameters. `embed` turns the texts into vectors (float32 [n, dim]); it is
        called only for the dense retriever. In hybrid mode a retriever that raises BackendUnavailableError is left
        out and named in `Answer.degraded`, unless `on_failure` is "fail". Raises IndexesError if k is below 1 or the
        mode is unknown, and BackendUnavailableError if no retriever can answer, or if one cannot and may not be left
        out.
        """
        if k < 1:
            raise IndexesError(f"k must be at least 1, not {k}")
        k = self.rows.at_most(k)
        mode = mode or self.settings.mode
        if mode not in MODES:
            raise IndexesError(f"unknown mode {mode!r}: choose one of {', '.join(MODES)}")
        retrievers = {
            "bm25": lambda n: self._text_retriever().search_rows(texts, n, where, bm25),
            "dense": lambda n: self._dense_retriever().search_rows(_vectors_of(embed, texts), n, where),
        }
        if mode != "hybrid":
            return Answer(self.rows.hits(*retrievers[mode](k)), mode)
        rankings, failures = self._ask(retrievers, max(k, self.settings.depth))
        if failures:
            (name, error), *others = failures.items()
            if others or self.settings.on_failure == "fail":
                raise BackendUnavailableError("; ".join(f"{n} unavailable: {e}" for n, e in failures.items()))
            alone: Mode = "dense" if name == "bm25" else "bm25"
            rows, scores = rankings[alone]
            return Answer(self.rows.hits(rows[:, :k], scores[:, :k]), alone, f"{name} unavailable: {error}")
        return Answer(
            self.rows.hits(*fuse([rankings["bm25"], rankings["dense"]], self.settings.fusion, k)), mode
        )

    def _ask(
        self, retrievers: dict[str, Callable[[int], Ranking]], depth: int
    ) -> tuple[dict[str, Ranking], dict[str, BackendUnavailableError]]:
        def attempt(retrieve: Callable[[int], Ranking]) -> Ranking | BackendUnavailableError:
            try:
                return retrieve(depth)
            except BackendUnavailableError as error:
                return error

        if self._at_once:
            with ThreadPoolExecutor(len(retrievers)) as threads:
                answers = [*threads.map(attempt, retrievers.values())]
        else:
            answers = [*map(attempt, retrievers.values())]
        rankings: dict[str, Ranking] = {}
        failures: dict[str, BackendUnavailableError] = {}
        for name, answer in zip(retrievers, answers, strict=True):
            if isinstance(answer, BackendUnavailableError):
                failures[name] = answer
            else:
                rankings[name] = answer
        return rankings, failures

    def _dense_retriever(self) -> RowSearch:
        if self.vectors is None:
            raise BackendUnavailableError(
                "the index has no vectors: rebuild it with `encoder`, or set `mode` to bm25"
            )
        return self.vectors

    def _text_retriever(self) -> TextSearch:
        if self.text is None:
            raise BackendUnavailableError("the index has no BM25 retriever: set `mode` to dense")
        return self.text


def _vectors_of(embed: Embed | None, texts: Sequence[str]) -> Matrix:
    if embed is None:
        raise BackendUnavailableError("dense search needs an encoder: pass `embed`")
    return np.asarray(embed(texts), dtype=np.float32)
