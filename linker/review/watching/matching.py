"""Match a batch of posts against an index of seeds, and keep the matches above a threshold."""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indexes.errors import BackendUnavailableError
from indexes.filters import Where
from indexes.hybrid import Answer, Mode
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.engine.engine import Engine
from linker.scoring.probability import cutting
from linker.scoring.probability.promise import Promise

BATCH = 256  # posts per search
FEWEST_ALONE = 20  # a trusted ranker has learned from at least this many judged queries without a link
PROBABLE = 0.5  # P(link) above which a link is more likely correct than not
PATIENCE = (1.0, 2.0, 5.0, 10.0, 30.0)  # seconds between attempts while the seeds cannot be searched


@dataclass(frozen=True, slots=True)
class PostMatch:
    """A post and a seed that it is about; `rank` counts from 1, `probability` is P(link), None if it is unknown."""

    post: Document
    seed: Document
    rank: int
    score: float
    probability: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the match as values for JSON."""
        said = {} if self.probability is None else {"probability": round(self.probability, 6)}
        return {
            "id": self.post.id, "seed": self.seed.id, "rank": self.rank, "score": self.score, **said,
            "text": self.post.text, "title": self.post.title, "seed_title": self.seed.title,
            "metadata": self.post.metadata,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cut:
    """The threshold for links: a P(link), a guaranteed precision, or a score. By default, P(link) ≥ 0.5."""

    threshold: float | None = None
    precision: float | None = None
    score: float | None = None


class Matcher:
    """Searches an index of seeds for the seeds that posts are about.

    Seeds that other processes add or delete take effect once they are committed. While the seeds cannot be searched (a
    server is down), posts wait; none is lost, and none is matched by only one retriever of a hybrid search.
    """

    def __init__(
        self,
        engine: Engine,
        cut: Cut,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Where | None = None,
        patience: Sequence[float] = PATIENCE,
    ) -> None:
        """Raises InputError if the index has no P(link) and no score is given, or cannot guarantee this precision."""
        self._engine, self._cut, self._k, self._mode, self._where = engine, cut, k, mode, where
        self._patience = patience
        self._remarks = set[str]()
        self._promises = dict[str, Promise]()
        self._ranked = cut.score is not None or self._ranker_is_trusted()
        if cut.score is None or cut.threshold is not None:
            self._trim(self._answer(["?"]))  # fail before the first post arrives if the index lacks P(link)

    def _ranker_is_trusted(self) -> bool:
        """Return whether P(link) may come from the index's ranker; if not, it comes from the index's calibration.

        Most posts in a stream have nothing to do with any seed, and a ranker that saw only queries with a link is
        confident about any post. Raises InputError if there is no calibration either.
        """
        ranker = self._engine.ranker
        if ranker is None:
            return True
        about = ranker.about  # linker's default ranker does not report these numbers
        queries, linked = about.get("queries"), about.get("found")
        alone = queries - linked if isinstance(queries, int) and isinstance(linked, int) else 0
        if alone >= FEWEST_ALONE:
            return True
        reason = (
            f"the ranker of {self._engine.directory} learned from {alone} queries without a link, and P(link) of posts "
            f"about no seed needs {FEWEST_ALONE}"
        )
        if self._engine.calibration is None:
            raise InputError(
                f"{reason}: run `linker calibrate` on judged posts of which some have no link, or train the ranker "
                "with such posts, or give `score`"
            )
        self._say(f"{reason}: P(link) is that of `linker calibrate`, without the ranker")
        return False

    def match(self, posts: Sequence[Document]) -> Iterator[PostMatch]:
        """Yield the matches of posts, in the order of the posts, the best seed of each post first."""
        for start in range(0, len(posts), BATCH):
            batch = posts[start : start + BATCH]
            answer = self._trim(self._answer([post.full_text for post in batch]))
            for post, hits in zip(batch, answer.hits, strict=True):
                said = None if hits.probabilities is None else hits.probabilities.tolist()
                for rank, hit in enumerate(hits, start=1):
                    probability = None if said is None else said[rank - 1]
                    if hit.document is not None:
                        yield PostMatch(post, hit.document, rank, hit.score, probability)

    def _answer(self, texts: Sequence[str]) -> Answer:
        """Search for texts; on failure, wait and try again."""
        pauses = itertools.chain(self._patience, itertools.repeat(self._patience[-1]))
        while True:
            try:
                answer = self._engine.search(
                    texts, self._k, mode=self._mode, where=self._where, stored_ranker=self._ranked
                )
                if not answer.degraded:
                    return answer
                reason = answer.degraded
            except BackendUnavailableError as e:
                reason = str(e)
            self._say(f"posts wait, since the seeds cannot be searched: {reason}")
            time.sleep(next(pauses))

    def _trim(self, answer: Answer) -> Answer:
        for message in answer.notes:
            self._say(message)
        cut = self._cut
        if cut.score is not None:
            answer = cutting.by_score(answer, cut.score)
        if cut.threshold is not None or cut == Cut():
            answer = cutting.by_probability(answer, PROBABLE if cut.threshold is None else cut.threshold)
        return answer if cut.precision is None else cutting.by_promise(answer, self._promise(answer))

    def _promise(self, answer: Answer) -> Promise:
        """Return the threshold certified by the calibration of an answer, which may change while posts arrive."""
        assert self._cut.precision is not None
        if answer.ranker:
            raise InputError(
                "`precision` needs held-out links, and a ranker has none: give `threshold` instead"
            )
        if (known := self._promises.get(answer.calibration or "")) is not None:
            return known
        calibration = self._engine.calibration
        promise = calibration.promise(self._cut.precision) if calibration else None
        if promise is None:
            raise InputError(
                f"{self._engine.directory} certifies no threshold for a precision of {self._cut.precision:g}: run "
                "`linker calibrate` on more judged posts, or ask for less"
            )
        logger.info("%s", promise)
        return self._promises.setdefault(answer.calibration or "", promise)

    def _say(self, message: str) -> None:
        """Log a remark only once, even if the figures in its brackets differ later."""
        kind = message.partition(" (")[0]
        if kind not in self._remarks:
            self._remarks.add(kind)
            logger.warning("%s", message)
