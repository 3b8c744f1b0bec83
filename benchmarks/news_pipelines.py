"""The gain in named entities from a language's own spaCy pipeline over the English one, the default.

`python -m benchmarks.news_pipelines --work FOLDER --ner es=es_core_news_sm fr=fr_core_news_sm` compares the
entities of all pairs of that language, of both splits, since entities are not trained; FOLDER caches them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.news_similarity import _pairs
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from linker.evaluation.correlation import pearson
from linker.papers.news.articles import NewsPair, targets
from linker.papers.news.entities import GROUPS, entity_cosines, group_counts
from linker.papers.news.recognise import DEFAULT, Recogniser, read_pipelines
from linker.papers.reproduce.frame import Value, row, table

ENGLISH = "the English pipeline reads another language"
OWN = "its labels are PER, LOC, ORG and MISC: it finds neither dates nor quantities"


def figures(pairs: Sequence[NewsPair], recogniser: Recogniser) -> Mapping[str, Value]:
    """Return the correlation of each group's cosine with human scores, and how many articles have no entity."""
    sides: list[list[Any]] = []
    empty = 0
    for articles in ([pair.first for pair in pairs], [pair.second for pair in pairs]):
        counts = [group_counts(mentions) for mentions in recogniser.mentions(articles)]
        empty += sum(not any(groups) for groups in counts)
        sides.append(counts)
    cosines = entity_cosines(*sides)
    gold = targets(pairs)
    found: dict[str, Value] = {}
    for group, column in zip(GROUPS, cosines.T, strict=True):
        found[group] = pearson(column, gold) if np.ptp(column) else None
    return found | {"articles without entities": empty}


@benchmark(work=KEPT, ner=([], "LANGUAGE=PIPELINE, as es=es_core_news_sm"))
def measured(options: Arguments) -> Results:
    """Return a table for each language: the English pipeline and the language's own."""
    cache = options.work / "entities.jsonl"
    pairs = [pair for split in ("train", "test") for pair in _pairs(split)[0]]
    tables = []
    for language, name in read_pipelines(options.ner).items():
        own = [pair for pair in pairs if pair.kind == f"{language}-{language}"]
        rows = [
            row(f"entities: {pipeline}", {}, figures(own, Recogniser({"": pipeline}, cache)), why)
            for pipeline, why in ((DEFAULT, ENGLISH), (name, OWN))
        ]
        tables.append(table(f"{language}: {len(own)} pairs", [*GROUPS, "articles without entities"], rows))
    return {"tables": tables}
