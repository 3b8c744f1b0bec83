"""The complete tables of the Star Transformer and its baselines, for docs/training.md; README.md has the short ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.support.ast_models import READY, differences
from linker.papers.all_pairs.result import RANKS

Rows = Mapping[str, Any]


def short(results: Any) -> Iterator[str]:
    """What the README shows: all pairs, and retrieval alone and with BM25."""
    yield (
        "**Encoders**, on test (± deviation over seeds). All but MiniLM start from the same word vectors; those with "
        "cloze from vectors that also learned from the documents themselves. The last column says which settings of "
        "`[training]` were not those of the ready configuration that is named (whose value is in brackets)"
        f"{shared_difference(results)}. BM25 here is an earlier one, before k3 and exact lengths:"
    )
    for data, rows in results.items():
        yield ""
        yield (
            f"| {data} | mAP, all pairs | AUC | mRP{_fewer_ranks(rows)} | MRR alone | MRR with BM25 "
            "| Success@1 with BM25 | measured with |"
        )
        yield "|---|---|---|---|---|---|---|---|"
        for name, row in _models(rows):
            pairs = [_figure(row.get("tables", {}).get(key)) for key in ("map", "auc", "mrp")]
            alone, hybrid = _alone(row), row.get("hybrid", {})
            found = [(alone, "mrr"), (hybrid, "mrr"), (hybrid, "success_1")]
            cells = [
                _figure(side.get(key)) + _seeds(side) for side, key in found
            ]  # of fewer seeds than the row
            yield f"| {name}{_seeds(row)} | {' | '.join([*pairs, *cells])} | {measured_with(name, row)} |"


def _fewer_ranks(rows: Rows) -> str:
    """Return over how many ranks a set's mRP is the mean, where these are not the paper's eight."""
    counts = {sum(key.startswith("p@") for key in row["tables"]) for row in rows.values() if "tables" in row}
    return "" if counts == {len(RANKS)} else f" over {' or '.join(map(str, sorted(counts)))} ranks"


def measured_with(name: str, row: Any) -> str:
    """Return a row's ready configuration, and the training settings that are not its own (which are in brackets)."""
    if "settings" not in row:
        return ""
    found = differences(name, row["settings"]).items()
    changed = [
        f"{key.partition('.')[2]} {_value(value)} ({_value(own)})"
        for key, (value, own) in found
        if not key.startswith("data.")
    ]
    return f"`{READY.get(name, name)}`" + (f": {', '.join(changed)}" if changed else "")


def shared_difference(results: Any) -> str:
    """Return what all rows have in place of the ready configurations' word vectors."""
    settings = [row["settings"] for rows in results.values() for row in rows.values() if "settings" in row]
    (vectors,) = {(s["data.word_vectors"], s["data.lsa_dim"]) for s in settings}
    return (
        f"; in all of them, the word vectors are {vectors[0]} with `lsa_dim = {vectors[1]}`, where the ready ones "
        "learn theirs from the corpus"
    )


def _value(value: Any) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def whole(results: Any) -> Iterator[str]:
    """Precision at r (the paper's Table 1), retrieval with Success@5, and what each part of the star is worth."""
    for data, rows in results.items():
        yield from (f"**{data}**: precision among the r best of all pairs (Danovitch's Table 1)", "")
        yield from _precisions(rows)
        yield from ("", f"**{data}**: retrieval over the whole corpus", "")
        yield from _retrieval(rows)
        if any(row.get("ablation") for row in rows.values()):
            yield from ("", f"**{data}**: the star with a part changed, one seed", "")
            yield from _ablations(rows)
        yield ""


def _precisions(rows: Rows) -> Iterator[str]:
    found = {name: row for name, row in _models(rows) if "tables" in row}
    ranks = [key for key in next(iter(found.values()))["tables"] if key.startswith("p@")]
    ranks.sort(key=lambda key: int(key[2:]))
    yield f"| | {' | '.join(key[2:] for key in ranks)} |"
    yield f"|---|{'---|' * len(ranks)}"
    for name, row in found.items():
        yield f"| {name}{_seeds(row)} | {' | '.join(_figure(row['tables'].get(key), 2) for key in ranks)} |"


def _retrieval(rows: Rows) -> Iterator[str]:
    yield "| | MRR | Success@1 | Success@5 | with BM25: MRR | Success@1 | Success@5 |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in _models(rows):
        sides = (_alone(row), row.get("hybrid", {}))
        if any(sides):
            cells = [_figure(side.get(key)) for side in sides for key in ("mrr", "success_1", "success_5")]
            yield f"| {name}{_seeds({**row, **_alone(row)})} | {' | '.join(cells)} |"


def _ablations(rows: Rows) -> Iterator[str]:
    yield "| | mAP, all pairs | MRR alone | with BM25 | dev: MRR alone | with BM25 | α's largest move | exact zeros |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, row in rows.items():
        if row.get("ablation"):
            sides = [row.get(key, {}).get("mrr") for key in ("dense", "hybrid", "dense_dev", "hybrid_dev")]
            alpha = [(row.get("alpha") or {}).get(key) for key in ("largest_move", "zeros")]
            yield f"| {name} | {' | '.join(map(_figure, [row['tables']['map'], *sides, *alpha]))} |"


def _models(rows: Rows) -> Iterator[tuple[str, Any]]:
    return ((name, row) for name, row in rows.items() if not row.get("ablation"))


def _alone(row: Any) -> Any:
    return row.get("dense", row.get("retrieval", {}))


def _seeds(row: Any) -> str:
    seeds = row.get("seeds")
    return "" if seeds is None else " (1 seed)" if seeds == 1 else f" ({seeds} seeds)"


def _figure(value: Any, digits: int = 3) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        spread = "" if value["sd"] is None else f" ± {value['sd']:.{digits}f}".replace("0.", ".")
        return f"{value['mean']:.{digits}f}{spread}"
    return f"{value:.{digits}f}"


def encode(results: Any) -> Iterator[str]:
    """Encoding speed by length."""
    yield "| documents per CPU-second, of | 256 tokens | 1,024 | 4,096 | × MiniLM at 256 |"
    yield "|---|---|---|---|---|"
    for name, row in results.items():
        speeds = [
            f"{row[key]:,.0f}" if key in row else "" for key in ("256 tokens", "1024 tokens", "4096 tokens")
        ]
        times = row.get("times MiniLM at 256 tokens")
        yield f"| {name} | {' | '.join(speeds)} | {'' if times is None else f'{times:.1f}'} |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "ast_tables": short,
    "ast_tables.whole": whole,
    "encode": encode,
}
