"""`linker similarity predict|evaluate|calibrate`: scores of article pairs, and their quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linker.base.options import Opt
from linker.base.printable import print_for_programs
from linker.base.terminal import AsJson, note, print_json
from linker.papers.commands.similarity import (
    CacheOption,
    EntitiesOption,
    NerOption,
    PairFiles,
    ProcessesOption,
    TranslateOption,
    TranslationsOption,
    recogniser_of,
)
from linker.papers.commands.similarity_pairs import translator_by

if TYPE_CHECKING:
    from linker.papers.news.articles import NewsPair
    from linker.papers.news.mistakes import Mistake

STEP = 0.25  # step between the thresholds of the table


def predict(
    model: Annotated[Path, Opt("A folder that `train` wrote.", "", metavar="MODEL")],
    pairs: PairFiles,
    out: Annotated[
        Path | None,
        Opt("Write id, score (1 (the same) to 4) and features here. Default: stdout.", metavar="FILE.tsv"),
    ] = None,
    explain: Annotated[
        bool, Opt("Add the entities and the words that both articles share.", "--explain")
    ] = False,
    ner: NerOption = None,
    cache: CacheOption = None,
    processes: ProcessesOption = 1,
    no_entities: EntitiesOption = False,
    translate: TranslateOption = None,
    translations: TranslationsOption = None,
    as_json: AsJson = False,
) -> None:
    """Score pairs by topic similarity.

    A high score does not mean that two articles report the same event. A pair with an empty article gets no score.

    Example: linker similarity predict model pairs.jsonl --out predictions.tsv
    """
    from linker.base.files import check_outputs, write_atomically
    from linker.papers.news.articles import read_news
    from linker.papers.news.recognise import read_pipelines
    from linker.papers.news.sharing import shared
    from linker.papers.news.similarity_folder import load
    from linker.papers.news.similarity_report import predictions_text
    from linker.scoring.pairs.translations import read_translators

    check_outputs({"--out": out}, (pairs, cache, translations))
    loaded = load(model)
    pipelines = read_pipelines(ner) if ner else dict(loaded.config.pipelines)
    entities = "entities" in loaded.config.features and not no_entities
    translators = read_translators(translate) if translate else dict(loaded.config.translators)
    loaded = replace(
        loaded,
        recogniser=recogniser_of(pipelines, cache, processes) if entities else None,
        translator=translator_by(translators, translations),
    )
    every = read_news(pairs, graded=False)
    scorable = _scorable(every)
    predictions = loaded.predict(scorable)
    explained = shared(loaded.compared(scorable), loaded.overlap, loaded.recogniser) if explain else []
    if out is not None:
        write_atomically(out, predictions_text(every, predictions, explained).encode())
    if as_json:
        columns = {"score": predictions.scores, **predictions.columns}
        values = {"ids": predictions.ids, **{name: values.tolist() for name, values in columns.items()}}
        contents = [{"entities": s.entities, "words": s.words} for s in explained]
        print_json(values | ({"shared": contents} if explain else {}))
    elif out is None:
        print_for_programs(predictions_text(every, predictions, explained))


def evaluate(
    pairs: PairFiles,
    predictions: Annotated[list[Path], Opt("Files that `predict` wrote.", "", metavar="PREDICTIONS.tsv...")],
    every: Annotated[
        bool, Opt("Test every pair of systems, not only the first against the others.", "--all-tests")
    ] = False,
    mistakes: Annotated[
        float | None,
        Opt(
            "List the pairs whose score in the first file is this far or farther from people's, worst first.",
            low=0,
            high=3,
            metavar="POINTS",
        ),
    ] = None,
    ner: NerOption = None,
    cache: CacheOption = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate predictions by Pearson's r.

    Evaluates scores and single features, overall and per language pair, with Williams tests. With --entities or
    --ner, the mistakes are listed with the entities of both articles.

    Example: linker similarity evaluate pairs.jsonl predictions.tsv
    """
    from linker.papers.news.articles import read_news
    from linker.papers.news.similarity_report import agree, scores_in, systems_of

    scored = _scorable(read_news(pairs))
    result = agree(scored, systems_of(predictions, scored), every=every)
    listed: list[Mistake] = []
    if mistakes is not None:
        from linker.papers.news.mistakes import mistakes as far_off
        from linker.papers.news.recognise import DEFAULT, read_pipelines

        wanted = recogniser_of(read_pipelines(ner) if ner else {"": DEFAULT}, cache, 1)
        listed = far_off(
            scored, scores_in(predictions[0], scored), mistakes, wanted if ner or cache else None
        )
    if as_json:
        extra = {} if mistakes is None else {"mistakes": [mistake.to_dict() for mistake in listed]}
        print_json(result.to_dict() | extra)
        return
    print(result.text(), end="")
    if mistakes is not None:
        print(f"{len(listed)} of {len(scored)} scores are off by {mistakes:g} or more")
    for mistake in listed:
        print(mistake.text())


def calibrate(
    pairs: PairFiles,
    predictions: Annotated[Path, Opt("A file that `predict` wrote.", "", metavar="PREDICTIONS.tsv")],
    same: Annotated[
        float, Opt("Pairs that people gave at most this score count as matches.", low=1, high=4)
    ] = 2.0,
    precision: Annotated[
        float | None, Opt("Also report the score threshold for this precision.", low=0, high=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the effect of each threshold on your own judged pairs.

    For each: how many pairs it accepts, how many of these match, and how many matches it misses. Set overall to 1 for
    a match and 4 otherwise if pairs were only judged that way.

    Example: linker similarity calibrate pairs.jsonl predictions.tsv
    """
    from linker.papers.news.articles import read_news
    from linker.papers.news.similarity_report import scores_in
    from linker.scoring.pairs.thresholds import thresholds

    scored = _scorable(read_news(pairs))
    grid = [1 + STEP * step for step in range(round(3 / STEP) + 1)]
    matches = [pair.score is not None and pair.score <= same for pair in scored]
    table = thresholds(scores_in(predictions, scored), matches, grid)
    chosen = None if precision is None else table.with_precision(precision)
    if as_json:
        score = None if chosen is None else chosen.score
        print_json(table.to_dict() | ({} if precision is None else {"with_precision": score}))
        return
    print(table.text(), end="")
    if precision is not None:
        where = "no threshold of the table" if chosen is None else f"a score of at most {chosen.score:g}"
        print(f"precision of at least {precision:g}: {where}")


def _scorable(pairs: Sequence[NewsPair]) -> tuple[NewsPair, ...]:
    from linker.base.errors import InputError
    from linker.papers.news.articles import keep_scorable

    kept, remark = keep_scorable(pairs)
    if remark:
        note(remark)
    if not kept:
        raise InputError("every pair has an empty article: there is nothing to score")
    return kept
