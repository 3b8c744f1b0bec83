"""`linker review simulate`: reviews of topics whose relevant documents are known, in one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, note, print_json
from linker.cli.evaluate import Qrels
from linker.engine.options import EncoderOption

if TYPE_CHECKING:
    from linker.review.simulating import Simulated


def simulate(
    directory: Index,
    qrels: Qrels,
    descriptions: Annotated[Path | None, Opt(
        "Start each topic from a text instead of from documents: the query in this file with the topic's id.",
        metavar="FILE")] = None,
    seeds: Annotated[int, Opt(
        "Relevant documents that are known at the start; 0: a random order.", low=0)] = 3,
    starts: Annotated[int, Opt("Reviews per topic, each from different seeds.", low=1)] = 1,
    target: Annotated[float, Opt("Recall at which the stopping rule stops.")] = 0.9,
    stop: Annotated[str, Opt("Stopping rule (see docs/stopping.md).", metavar="RULE")] = "urn",
    max_read: Annotated[int | None, Opt("Read at most this many documents per review.", low=1)] = None,
    plot: Annotated[Path | None, Opt("Draw the recall after each read.", metavar="FILE.svg")] = None,
    encoder: EncoderOption = None,
    seed: Annotated[int, Opt("Random seed.")] = 0,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Simulate reviews of topics whose relevant documents are known.

    For each topic: the reads to 10 documents and to 80, 90, 95 and 100 % of them, WSS@95, NDCG, after how many reads
    the stopping rule stopped, the recall there, and the estimate of all relevant documents then.
    The last line has the means, each over the reviews that reached that point.

    Example: linker review simulate news.index qrels.txt --starts 3
    """
    from linker.base.files import write_atomically
    from linker.corpora import read_queries
    from linker.engine.engine import Engine
    from linker.evaluation.formats import load_qrels
    from linker.review.simulating import Plan, recall_plot
    from linker.review.simulating import simulate as read

    texts = {query.id: query.text for query in read_queries(descriptions)} if descriptions else {}
    plan = Plan(texts, seeds, starts, target, stop, max_read, seed)
    reviews: list[Simulated] = []
    for review in read(Engine.open(directory, encoder=encoder), load_qrels(qrels), plan):
        note(
            f"{review.topic}: {review.found[-1]:,} of {review.relevant:,} found in {len(review.found):,} reads"
        )
        reviews.append(review)
    if plot and reviews:
        write_atomically(plot, recall_plot(reviews, target).encode())
        note(f"the recall of each review is drawn in {plot}")
    records = [review.record() for review in reviews]
    if as_json:
        print_json({"reviews": records, "mean": _means(records)})
    else:
        _print_table(records)


def _means(records: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return the mean of each measure over the reviews that have it."""
    means = dict[str, float | None]()
    for name in list(records[0])[2:] if records else ():
        known = [record[name] for record in records if record[name] is not None]
        means[name] = sum(known) / len(known) if known else None
    return means


def _print_table(records: Sequence[dict[str, Any]]) -> None:
    if not records:
        note("no topic has relevant documents in the index")
        return
    rows = [*records, {"topic": "mean", "start": "", **_means(records)}]
    header = [name.removeprefix("reads_").replace("_", " ") for name in records[0]]
    cells = [header, *([_cell(row[name]) for name in records[0]] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([row[0].ljust(len(first)), *others]))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if value <= 1 else f"{value:,.0f}"
    return str(value)
