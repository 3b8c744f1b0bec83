"""The input of a linking method, its options, and its result."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from indexes.dtypes import Int64Array
from linker.base.progress import bar
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.model import LinkModel
from linker.crosslingual.scoring.assignment import MARGIN_NEIGHBOURS
from linker.crosslingual.scoring.candidates import DEPTH, Candidates, Neighbours, PagePairScorer, nearest
from linker.crosslingual.scoring.checkpoint import Checkpoint, fingerprint
from linker.crosslingual.sides import links_between
from linker.engine.evidence import Span
from linker.scoring.ranking.calibrated_ranker import CalibratedRanker

V = TypeVar("V")
NO_LINKS = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Task:
    """Two collections of pages to link, and everything that a method may use for it.

    `train`: int64 [l, 2], rows of source and target pages that are known to be linked; `pivot_links`: int64 [l, 2],
    rows of pivot and target pages; `encoder`: a name or path for `load_encoder`; `model`: what an earlier task learned;
    `rankers`: rankers to start from in place of the package's, by the names of their settings.
    """

    source: Pages
    target: Pages
    dictionaries: tuple[Dictionary, ...] = ()
    train: Int64Array = field(default_factory=lambda: NO_LINKS)
    pivot: Pages | None = None
    pivot_links: Int64Array = field(default_factory=lambda: NO_LINKS)
    encoder: str | None = None
    options: Options = field(default_factory=Options)
    checkpoint: Checkpoint | None = None
    rankers: Mapping[str, CalibratedRanker] | None = None
    model: LinkModel | None = None

    def fingerprint(self, method: str) -> str:
        """Return a hash of everything that the scores depend on, in hexadecimal."""
        entries = [f"{a}\t{b}" for dictionary in self.dictionaries for a, b in dictionary.pairs]
        links = (self.train.tolist(), self.pivot_links.tolist())
        model = self.model.fingerprint if self.model else ""
        words = (method, repr(self.options.record()), repr(links), str(self.encoder), model, *entries)
        return fingerprint(self.source, self.target, *([self.pivot] if self.pivot else []), *words)

    def nearest(self, scorer: PagePairScorer) -> Neighbours:
        """Score all pairs of pages, with a progress bar and the task's checkpoint. Raises InputError."""
        with bar(scorer.shape[0], "comparing", "pages") as meter:
            return nearest(
                scorer,
                self.source.keys,
                self.target.keys,
                depth=DEPTH,
                k=MARGIN_NEIGHBOURS,
                checkpoint=self.checkpoint,
                advance=meter.update,
            )


@dataclass(frozen=True, eq=False)
class LinkingResult:
    """A method's result: the final ranking, metadata on how it was made and, if requested, explanations.

    `proposed`: each page's best target and its probability, even if this is below the minimum (auto, cascade).
    `model` turns what was learned into a model that can be saved; None if the method learns nothing. `passage` takes a
    page's id and returns the start and end, in its best target, of the sentence that it is about (auto, cascade).
    """

    candidates: Candidates
    metadata: Mapping[str, Any] = field(default_factory=dict)
    explanations: Iterable[Mapping[str, Any]] | None = None
    proposed: Sequence[tuple[str, str, float]] = ()
    model: Callable[[], LinkModel] | None = None
    passage: Callable[[str], Span | None] | None = None


Method = Callable[[Task], LinkingResult]


def encode_both(task: Task, name: str, encode: Callable[..., V]) -> tuple[V, V]:
    """Return the source and the target pages as vectors, made by `encode` with the encoder `name`."""
    from linker.encoders.loading import load_encoder

    encoder = load_encoder(name)
    vectors = []
    for pages in (task.source, task.target):
        with bar(len(pages), f"encoding {pages.language.code}", "pages") as meter:
            vectors.append(encode(encoder, pages.texts, meter.update))
    return vectors[0], vectors[1]


def read_links(path: Path, source: Pages, target: Pages) -> Int64Array:
    """Read links, int64 [l, 2] rows, from qrels, logging those left out. Raises InputError if none remains."""
    from linker.evaluation.reading.judgements import merged_qrels

    judged = merged_qrels([path])
    linked = [(one, other) for one, of in judged.items() for other, grade in of.items() if grade > 0]
    good = links_between(path, linked, source.position, target.position)
    return np.array([(source.position[one], target.position[other]) for one, other in good], np.int64)
