"""`linker rank …`: train a ranker for an index, and explain its order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from indexes.showing import one_line
from linker.base.options import Opt
from linker.base.terminal import AsJson, Index, note, print_json, warn
from linker.engine.options import EncoderOption

if TYPE_CHECKING:
    from linker.engine.engine import Engine
    from linker.scoring.ranking.ranker import Ranker
    from linker.scoring.ranking.training import Training


def train(
    directory: Index,
    queries: Annotated[Path, Opt("Queries: JSONL, BEIR or TSV.", metavar="FILE")],
    qrels: Annotated[Path, Opt("Judgements of the queries.", metavar="FILE")],
    out: Annotated[Path | None, Opt("Write the ranker to this folder.", metavar="MODEL")] = None,
    into: Annotated[bool, Opt(
        "Store the ranker in the index, which then searches with it.", "--into")] = False,
    force: Annotated[bool, Opt(
        "Store the ranker with --into even if it ranks worse than the first stage.", "--force")] = False,
    dev_queries: Annotated[Path | None, Opt("Measure on these queries too.", metavar="FILE")] = None,
    dev_qrels: Annotated[Path | None, Opt("Judgements of --dev-queries.", metavar="FILE")] = None,
    date_field: Annotated[str, Opt(
        "Metadata field of a document's date, compared with the query's.", metavar="NAME")] = "",
    date_direction: Annotated[Literal["after", "before", "near"], Opt(
        "When the linked document is dated, relative to the query.")] = "near",
    with_encoder: Annotated[bool, Opt(
        "Use the index's encoder, which must not have learned from the same links.",
        "--with-encoder/--without-encoder")] = True,
    candidates: Annotated[int, Opt(
        "Candidates from BM25; the encoder adds half as many.", low=1, high=1000)] = 20,
    seed: Annotated[int, Opt("Seed of the folds and the trees.", low=0)] = 0,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Train a ranker for an index on judged queries.

    It learns to rerank the best candidates of BM25 and the encoder, and estimates the probability of each link.

    Example: linker rank train news.index --queries posts.jsonl --qrels links.qrels --into
    """
    if (out is None) != into or (dev_queries is None) != (dev_qrels is None):
        raise typer.BadParameter("give either --out or --into, and --dev-queries with --dev-qrels")
    from linker.corpora import read_queries
    from linker.encoders.model_folder import check_replaceable
    from linker.engine.engine import Engine
    from linker.evaluation.reading.judgements import merged_qrels
    from linker.scoring.ranking import folder, learning
    from linker.scoring.ranking.candidates import PoolSettings

    if out is not None:
        check_replaceable(out, folder.FORMATS, "ranker")
    engine = Engine.open(directory, encoder=encoder)
    settings = PoolSettings(
        candidates, (candidates + 1) // 2, date_field=date_field, direction=date_direction
    )
    use = with_encoder and engine.collection.manifest.embeds
    trained = engine.train_ranker(
        read_queries(queries), merged_qrels([qrels], warn), settings, encoder=use, seed=seed, advance=note
    )
    with tempfile.TemporaryDirectory() as temporary:
        ranker = folder.save(trained.ranker, trained.text, out or Path(temporary) / "ranker")
        if into:
            if not force:
                _check_leads(trained)
            engine.store_ranker(Path(temporary) / "ranker")
    figures: dict[str, Any] = {
        "ranker": ranker.fingerprint,
        **trained.figures(),
        "trees": len(ranker.forest.trees),
    }
    if dev_queries is not None and dev_qrels is not None:
        embed = engine.embed if use else None
        judged = merged_qrels([dev_qrels], warn)
        figures["dev"] = learning.measure(engine.collection, ranker, embed, read_queries(dev_queries), judged)
    if as_json:
        print_json(figures)
        return
    print(
        f"{out or directory}: {ranker.fingerprint}, {figures['trees']} trees from {trained.found} linked queries"
    )
    _print_figures("cross-validated", figures)
    if "dev" in figures:
        _print_figures("dev", figures["dev"])
        if figures["dev"]["mrr"] <= figures["dev"]["mrr_before"]:
            warn("on dev the ranker is not better: train it on more links, or search with --no-rerank")


def _check_leads(trained: Training) -> None:
    """Raise InputError if a ranker is worse than the first-stage order, which it would replace."""
    from linker.base.errors import InputError

    if trained.mrr < trained.mrr_before:
        raise InputError(
            "the ranker is worse than the first stage in cross-validation "
            f"(MRR {trained.mrr_before:.4f} → {trained.mrr:.4f}, "
            f"S@1 {trained.success_before:.4f} → {trained.success:.4f}), so it is not stored: "
            "train it on more links, or store it with --force"
        )


def _print_figures(name: str, figures: dict[str, Any]) -> None:
    print(
        f"{name:16} MRR {figures['mrr_before']:.4f} → {figures['mrr']:.4f}   "
        f"S@1 {figures['success_before']:.4f} → {figures['success']:.4f}"
    )


def explain(
    directory: Index,
    query: Annotated[str, Opt("The query.", metavar="TEXT")],
    model: Annotated[Path | None, Opt("A ranker; by default the index's own.", metavar="MODEL")] = None,
    k: Annotated[int, Opt("Candidates to show.", "-k", low=1)] = 3,
    features: Annotated[int, Opt("Features to show per candidate.", low=1)] = 8,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:
    """Show why a ranker orders the candidates of a query as it does.

    For each candidate: the probability of a link, and the features that moved its score most, with their values. The
    contributions are signed Shapley values; together with the rest and the base value they add up to the score.

    Example: linker rank explain news.index --query "floods in Valencia"
    """
    from linker.engine.engine import Engine

    engine = Engine.open(directory, encoder=encoder)
    ranker = _ranker(engine, model)
    pool, ranked, moved = engine.ranked_search(ranker).explain(query, features)
    inputs = dict(zip(pool.rows[0].tolist(), ranker.inputs(pool), strict=False))
    shown: list[dict[str, Any]] = []
    for number, (id_, parts) in enumerate(moved[:k]):
        row = int(ranked.rows[0, number])
        values = dict(zip(ranker.forest.names, inputs[row].tolist(), strict=True))
        listed = [
            {"feature": n, "value": values.get(n), "contribution": c} for n, c in parts.features.items()
        ]
        figures = {"link": float(ranked.links[0, number]), "score": float(ranked.scores[0, number])}
        sums = {"start": parts.start, "rest": parts.rest}
        shown.append({"id": id_, **figures, **sums, "features": listed})
    no_match = float(ranked.none[0])
    if as_json:
        print_json({"query": query, "ranker": ranker.fingerprint, "no_match": no_match, "candidates": shown})
        return
    print(f"no relevant document among the candidates: {no_match:.3f}")
    for candidate in shown:
        print(
            f"{candidate['link']:.3f}  {candidate['id']}  {one_line(engine.document(candidate['id']).full_text, 80)}"
        )
        print(f"    {candidate['score']:+8.3f}  the score, which is the sum of:")
        for part in candidate["features"]:
            value = "" if part["value"] is None else f" = {part['value']:.4g}"
            print(f"    {part['contribution']:+8.3f}  {part['feature']}{value}")
        print(f"    {candidate['rest']:+8.3f}  all other features")
        print(f"    {candidate['start']:+8.3f}  the base score of every candidate")


def _ranker(engine: Engine, model: Path | None) -> Ranker:
    from linker.base.errors import InputError
    from linker.scoring.ranking.ranker import Ranker
    from linker.scoring.reranking import load_reranker

    ranker = engine.ranker if model is None else load_reranker(model)
    if isinstance(ranker, Ranker):
        return ranker
    where = f"{model} is not a ranker" if model else f"{engine.directory} has no ranker"
    raise InputError(f"{where}: train one with `linker rank train`, and name it with --model")
