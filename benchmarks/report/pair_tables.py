"""Tables for the pages: scorers of pairs, news similarity, and published systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report.cells import bracketed, renders
from linker.papers.reproduce.frame import cells, remarks

RESOURCES = {"msrpar": "MSRpar", "msrvid": "MSRvid", "smteuroparl": "SMTeuroparl"}
ROWS = {
    "bag of words": "bag of words",
    "MiniLM cosine": "MiniLM's cosine, untrained",
    "Cross-BERT-GRU": "Cross-BERT-GRU",
    "Cross-BERT-GRU, back-translated": "Cross-BERT-GRU, back-translated",
}
SPLITS = ("held out", "dev", "test")


@renders("sts")
def scores(results: Any) -> Iterator[str]:
    """Spearman's correlation by resource, the leads over the cosine, and the Arabic pairs."""
    resources = results["resources"]
    yield f"| Spearman's correlation [95 %] | {' | '.join(RESOURCES.values())} |"
    for system, name in ROWS.items():
        rows = [resources[key][system] for key in RESOURCES]
        yield f"| {name} | {' | '.join(_score(row) for row in rows)} |"
        if "lead over the cosine" in rows[0]:
            leads = [bracketed(row["lead over the cosine"], "+") for row in rows]
            yield f"| its lead over the cosine | {' | '.join(leads)} |"
    costs = [
        t["cpu_s"]
        for row in resources.values()
        for t in row["Cross-BERT-GRU"].get("training", ())
        if "cpu_s" in t
    ]
    if costs:
        yield f"Training took {min(costs):.0f} to {max(costs):.0f} CPU-seconds per model."
    yield "| STS-2017 Arabic, Pearson's correlation [95 %] | |"
    for name, row in results["arabic"].items():
        yield f"| {name} | {bracketed(row['pearson'])} |"


@renders("sts_rerank")
def reranked(results: Any) -> Iterator[str]:
    """MRR before and after reranking, by split."""
    sizes = [f"{split} ({results[split]['queries']})" for split in SPLITS]
    yield f"| MRR | {' | '.join(sizes)} |"
    for key in ("hybrid", "reranked"):
        yield f"| {key} | {' | '.join(f'{results[split][key][0]:.3f}' for split in SPLITS)} |"
    yield f"| gain [95 %] | {' | '.join(bracketed(results[split]['gain in MRR'], '+') for split in SPLITS)} |"
    alone = [f"{results[split]['reranker alone']:.3f}" for split in SPLITS]
    yield f"| reranker alone (weight 1) | {' | '.join(alone)} |"
    training = results["training"]
    yield f"Training on {training['links']} links took {training['cpu_s'] / 60:.0f} CPU-minutes."


def _score(row: Any) -> str:
    score, low, high = row["spearman"]
    deviation = f" ± {row['deviation']:.3f}" if row.get("deviation") else ""
    return f"{score:.3f}{deviation} [{low:.3f}, {high:.3f}]"


@renders("news_similarity")
def news_similarity(results: Any) -> Iterator[str]:
    """Pearson of every system on test, by language pair, and the Williams tests between steps."""
    systems = results["systems"]
    kinds = list(next(iter(systems.values()))["kinds"])
    seeds = max(len(row["seeds"]) for row in systems.values())
    yield (
        f"Pearson on {results['pairs']} test pairs (95 % bootstrap interval), mean of up to {seeds} seeds; "
        f"{results['train']} pairs to train on:"
    )
    yield f"| | all | {' | '.join(kinds)} |"
    for name, row in systems.items():
        low, high = row["interval"]
        cells = " | ".join("–" if row["kinds"][k] is None else f"{row['kinds'][k]:.2f}" for k in kinds)
        yield f"| {name} | {row['pearson']:.3f} ({low:.3f}–{high:.3f}) | {cells} |"
    yield ""
    yield "| is ahead of | difference | p, Williams one-sided, of each seed |"
    for step, ps in results["williams_p"].items():
        a, b = step.split(" > ")
        difference = systems[a]["pearson"] - systems[b]["pearson"]
        yield f"| {a} > {b} | {difference:+.3f} | {', '.join(_p(p) for p in ps)} |"


def _p(p: float) -> str:
    return "< .0001" if p < 1e-4 else f"{p:.4f}".removeprefix("0")


@renders("published")
def published(results: Any) -> Iterator[str]:
    """One row per system, then the commands of each row."""
    yield "| | MAP@5 (95 %) | MRR@5 | Success@1 |"
    for name, row in results.items():
        low, high = row["intervals"]["map_cut_5"]
        found = row["measures"]
        yield (
            f"| {name} | {found['map_cut_5']:.3f} ({low:.3f}–{high:.3f}) | {found['recip_rank']:.3f} | "
            f"{found['success_1']:.3f} |"
        )
    yield "```"
    for name, row in results.items():
        yield f"# {name}"
        yield from row["commands"]
    yield "```"


# benchmarks whose results have the same layout
SYSTEMS = ("published_star", "published_bucc", "published_news", "published_sts")


@renders(*SYSTEMS, "same_event", "news_pipelines")
def systems(results: Any) -> Iterator[str]:
    """Tables of `linker reproduce`: two lines per system, published and ours, and why they differ."""
    for table in results["tables"]:
        yield f"**{table['title']}**"
        yield from (f"| {' | '.join(line)} |" for line in cells(table))
        for remark in (*remarks(table), *_recorded_earlier(table)):
            yield from (remark, "")


def _recorded_earlier(table: Any) -> Iterator[str]:
    """Yield the rows of earlier records, by machine and commit."""
    where = dict.fromkeys(row["recorded"] for row in table["rows"] if "recorded" in row)
    for place in where:
        names = "; ".join(row["system"] for row in table["rows"] if row.get("recorded") == place)
        yield f"Recorded earlier ({place}): {names}."
