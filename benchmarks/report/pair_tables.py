"""The tables of the pair scorers, for docs/sts.md: each score with its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

RESOURCES = {"msrpar": "MSRpar", "msrvid": "MSRvid", "smteuroparl": "SMTeuroparl"}
ROWS = {
    "bag of words": "bag of words",
    "MiniLM cosine": "MiniLM's cosine, untrained",
    "Cross-BERT-GRU": "Cross-BERT-GRU",
    "Cross-BERT-GRU, back-translated": "Cross-BERT-GRU, back-translated",
}
SPLITS = ("held out", "dev", "test")


def scores(results: Any) -> Iterator[str]:
    """Spearman's correlation by resource, the leads over the cosine, and the Arabic pairs."""
    resources = results["resources"]
    yield f"| Spearman's correlation [95 %] | {' | '.join(RESOURCES.values())} |"
    yield "|---" * (1 + len(RESOURCES)) + "|"
    for system, name in ROWS.items():
        rows = [resources[key][system] for key in RESOURCES]
        yield f"| {name} | {' | '.join(_score(row) for row in rows)} |"
        if "lead over the cosine" in rows[0]:
            leads = [_interval(row["lead over the cosine"], "+") for row in rows]
            yield f"| its lead over the cosine | {' | '.join(leads)} |"
    costs = [
        t["cpu_s"]
        for row in resources.values()
        for t in row["Cross-BERT-GRU"].get("training", ())
        if "cpu_s" in t
    ]
    yield ""
    if costs:
        yield f"Training took {min(costs):.0f} to {max(costs):.0f} CPU-seconds per model."
        yield ""
    yield "| STS-2017 Arabic, Pearson's correlation [95 %] | |"
    yield "|---|---|"
    for name, row in results["arabic"].items():
        yield f"| {name} | {_interval(row['pearson'])} |"


def reranked(results: Any) -> Iterator[str]:
    """MRR before and after reranking, by split."""
    sizes = [f"{split} ({results[split]['queries']})" for split in SPLITS]
    yield f"| MRR | {' | '.join(sizes)} |"
    yield "|---" * (1 + len(SPLITS)) + "|"
    for key in ("hybrid", "reranked"):
        yield f"| {key} | {' | '.join(f'{results[split][key][0]:.3f}' for split in SPLITS)} |"
    yield f"| gain [95 %] | {' | '.join(_interval(results[split]['gain in MRR'], '+') for split in SPLITS)} |"
    alone = [f"{results[split]['reranker alone']:.3f}" for split in SPLITS]
    yield f"| reranker alone (weight 1) | {' | '.join(alone)} |"
    training = results["training"]
    yield ""
    yield f"Training on {training['links']} links took {training['cpu_s'] / 60:.0f} CPU-minutes."


def mixed(results: Any) -> Iterator[str]:
    """Spearman's correlation without and with the option `mix`, by resource and preset."""
    figures = results["figures"]
    yield f"| | | share per seed | {' | '.join(figures)} |"
    yield "|---" * (3 + len(figures)) + "|"
    for row in results["rows"]:
        shares = ", ".join(f"{share:g}" for share in row["shares"])
        cells = " | ".join(f"{row[figure]:.3f}" for figure in figures)
        yield f"| {RESOURCES[row['resource']]} | `{row['preset']}` | {shares} | {cells} |"


def _score(row: Any) -> str:
    score, low, high = row["spearman"]
    deviation = f" ± {row['deviation']:.3f}" if row.get("deviation") else ""
    return f"{score:.3f}{deviation} [{low:.3f}, {high:.3f}]"


def _interval(values: Any, sign: str = "") -> str:
    mean, low, high = values
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"sts": scores, "sts_mix": mixed, "sts_rerank": reranked}
