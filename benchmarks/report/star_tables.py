"""Tables for the pages: the star and its baselines, what attention learns, the cost of length and the case study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.report.cells import renders, spread
from benchmarks.support.ast_models import READY, differences
from linker.papers.all_pairs.result import RANKS

Rows = Mapping[str, Any]


@renders("ast_tables")
def encoders(results: Any) -> Iterator[str]:
    """The table in the README: all pairs, and retrieval alone and with BM25."""
    yield (
        "**Encoders**, on test (± deviation over seeds). All but MiniLM start from the same word vectors; for rows "
        "with cloze, these also learned from the documents themselves. mRP is the mean over eight ranks. BM25 is an "
        "earlier version, without k3 and exact lengths. The last column names a ready configuration and the settings "
        f"of `[training]` that differ from it, with its own value in brackets. {shared_difference(results)}:"
    )
    for data, rows in results.items():
        yield ""
        yield (
            f"| {data} | mAP, all pairs | AUC | mRP | MRR alone | MRR with BM25 "
            "| Success@1 with BM25 | measured with |"
        )
        for name, row in _models(rows):
            pairs = [spread(_all_pairs(row).get(key)) for key in ("map", "auc", "mrp")]
            alone, hybrid = _alone(row), row.get("hybrid", {})
            found = [(alone, "mrr"), (hybrid, "mrr"), (hybrid, "success_1")]
            # `_seeds` marks a figure from fewer seeds than the row.
            cells = [spread(side.get(key)) + _seeds(side) for side, key in found]
            yield f"| {name}{_seeds(row)} | {' | '.join([*pairs, *cells])} | {measured_with(name, row)} |"


@renders("star_for_all")
def for_all(results: Any) -> Iterator[str]:
    """The shipped star on each set held out of its training: MRR alone and with BM25, and its leads."""
    heads = ("texts", "seeds", "BM25", "mean of vectors", "star", "its lead", "BM25 + mean", "BM25 + star")
    yield f"| left out | {' | '.join(heads)} | lead over BM25 |"
    for name, row in results["sets"].items():
        systems = [row[system] for system in ("BM25", "mean", "star", "mean + BM25", "star + BM25")]
        bm25, mean, star, *hybrids = (f"{system['mrr']:.3f}" for system in systems)
        alone, both = _lead_over("mean", row["star"]), _lead_over("BM25", row["star + BM25"])
        cells = (name, f"{row['texts']:,}", str(row["seeds"]), bm25, mean, star, alone, *hybrids, both)
        yield f"| {' | '.join(cells)} |"
    cost = results["cpu_s_per_1000_stories"]
    yield (
        f"A thousand news stories cost {cost['star']:.1f} CPU-seconds, and {cost['minilm']:.0f} with MiniLM, which "
        "reads no more than the first 256 tokens of each."
    )


def _lead_over(against: str, row: Any) -> str:
    found = row["against"][against]
    return f"{found['lead']:+.3f} (p {found['p']:.4f})"


def _all_pairs(row: Any) -> dict[str, Any]:
    """Return a row's figures over all pairs, with mRP only if it is the mean over the paper's eight ranks."""
    found: dict[str, Any] = row.get("tables", {})
    whole = sum(key.startswith("p@") for key in found) == len(RANKS)
    return found if whole else {key: value for key, value in found.items() if key != "mrp"}


def measured_with(name: str, row: Any) -> str:
    """Return a row's ready configuration, and (in brackets) the training settings that differ from it."""
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
    """Return the word vectors that all rows use instead of the ready configurations'."""
    settings = [row["settings"] for rows in results.values() for row in rows.values() if "settings" in row]
    (vectors,) = {(s["data.word_vectors"], s["data.lsa_dim"]) for s in settings}
    return (
        f"All rows use the word vectors {vectors[0]} with `lsa_dim = {vectors[1]}`, whereas the ready configurations "
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


@renders("ast_tables.whole")
def whole(results: Any) -> Iterator[str]:
    """Precision at r (the paper's Table 1), retrieval with Success@5, and what each part of the star is worth."""
    for data, rows in results.items():
        yield from (f"**{data}**: precision among the top r of all pairs (Danovitch's Table 1)", "")
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
    for name, row in found.items():
        yield f"| {name}{_seeds(row)} | {' | '.join(spread(row['tables'].get(key), 2) for key in ranks)} |"


def _retrieval(rows: Rows) -> Iterator[str]:
    yield "| | MRR | Success@1 | Success@5 | with BM25: MRR | Success@1 | Success@5 |"
    for name, row in _models(rows):
        sides = (_alone(row), row.get("hybrid", {}))
        if any(sides):
            cells = [spread(side.get(key)) for side in sides for key in ("mrr", "success_1", "success_5")]
            yield f"| {name}{_seeds({**row, **_alone(row)})} | {' | '.join(cells)} |"


def _ablations(rows: Rows) -> Iterator[str]:
    yield "| | mAP, all pairs | MRR alone | with BM25 | dev: MRR alone | with BM25 | α's largest move | exact zeros |"
    for name, row in rows.items():
        if row.get("ablation"):
            sides = [row.get(key, {}).get("mrr") for key in ("dense", "hybrid", "dense_dev", "hybrid_dev")]
            alpha = [(row.get("alpha") or {}).get(key) for key in ("largest_move", "zeros")]
            yield f"| {name} | {' | '.join(map(spread, [row['tables']['map'], *sides, *alpha]))} |"


def _models(rows: Rows) -> Iterator[tuple[str, Any]]:
    return ((name, row) for name, row in rows.items() if not row.get("ablation"))


def _alone(row: Any) -> Any:
    return row.get("dense", row.get("retrieval", {}))


def _seeds(row: Any) -> str:
    seeds = row.get("seeds")
    return "" if seeds is None else " (1 seed)" if seeds == 1 else f" ({seeds} seeds)"


@renders("encode")
def encode(results: Any) -> Iterator[str]:
    """Encoding speed by length."""
    yield "| documents per CPU-second, of | 256 tokens | 1,024 | 4,096 | × MiniLM at 256 |"
    for name, row in results.items():
        speeds = [
            f"{row[key]:,.0f}" if key in row else "" for key in ("256 tokens", "1024 tokens", "4096 tokens")
        ]
        times = row.get("times MiniLM at 256 tokens")
        yield f"| {name} | {' | '.join(speeds)} | {'' if times is None else f'{times:.1f}'} |"


MEASURES = (("cpu_s", "CPU seconds", 2), ("mib", "MiB", 0))


@dataclass(frozen=True, slots=True)
class Law:
    """A cost of a · n^b for texts of n tokens, and R², the share of the log-cost's variance that it explains."""

    a: float
    b: float
    explained: float

    @classmethod
    def fit(cls, tokens: Sequence[float], costs: Sequence[float]) -> Law:
        """Fit by least squares on logarithms."""
        x, y = np.log(tokens), np.log(costs)
        b, log_a = np.polyfit(x, y, 1)
        rest = y - (log_a + b * x)
        return cls(float(np.exp(log_a)), float(b), float(1 - rest @ rest / ((y - y.mean()) @ (y - y.mean()))))

    def __str__(self) -> str:
        """Return the law with a for a thousand tokens, which is easier to interpret than for one token."""
        return f"{self.a * 1000**self.b:.3g} · (n / 1,000)^{self.b:.2f}"


def laws(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Law]:
    """Return the law of each model and measure."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        for key, *_ in MEASURES:
            found[model, key] = Law.fit([row["tokens"] for row in own], [row[key] for row in own])
    return found


@renders("star_length")
def star_length(results: Any) -> Iterator[str]:
    """CPU time and memory of a training step by length with their law, and how attention spreads."""
    rows = {(row["model"], row["tokens"]): row for row in results["rows"]}
    lengths = list(dict.fromkeys(tokens for _, tokens in rows))
    yield (
        "| two texts, a forward and a backward pass "
        f"| {' | '.join(f'{n:,} tokens' for n in lengths)} | law, for n tokens | R² |"
    )
    units = {key: (unit, digits) for key, unit, digits in MEASURES}
    for (name, key), law in laws(results["rows"]).items():
        unit, digits = units[key]
        cells = [f"{rows[name, n][key]:,.{digits}f}" for n in lengths]
        yield f"| {name}, {unit} | {' | '.join(cells)} | {law} | {law.explained:.3f} |"
    yield ""
    yield "| scores uniform in [−1, 1] | softmax, largest weight | sparsemax, largest weight | zeros | Σ eᶻ per token |"
    for row in results["weights"]:
        yield (
            f"| {row['tokens']} tokens | {row['softmax']:.3f} | {row['sparsemax']:.3f} | "
            f"{row['sparsemax zeros']:.0%} | {row['exp']:.4f} |"
        )


@renders("case_study")
def case_study(results: Any) -> Iterator[str]:
    """Per article: accepted posts, how many posts are read until N links, the first posts, words, and extreme posts."""
    rows = results["rows"]
    until = list(dict.fromkeys(n for row in rows for n in row["until"]))
    accepted = f"cosine ≥ {results['accepted']}: posts, linked"
    yield (
        f"| words of the article's attention | words of the posts' attention | linked | {accepted} | "
        f"{' | '.join(f'read until {n}' for n in until)} | first posts |"
    )
    for row in rows:
        read = [f"{row['until'][n]:g}" if n in row["until"] else "" for n in until]
        words = [", ".join(_code(word) for word in row[key]) for key in ("words", "words of posts")]
        first = "".join("●" if linked else "○" for linked in row["first"])
        yield (
            f"| {' | '.join(words)} | {row['linked']} of {row['posts']} | {row['accepted']}, {row['right']} | "
            f"{' | '.join(read)} | {first} |"
        )
    yield ""
    yield "| words of the article's attention | most similar posts | least similar posts |"
    for row in rows:
        extremes = [" · ".join(map(_post, row[key])) for key in ("most similar", "least similar")]
        yield f"| {', '.join(map(_code, row['words']))} | {' | '.join(extremes)} |"


def _post(post: Any) -> str:
    """Return whether a post is linked, its cosine, and the words with the most attention."""
    return f"{'●' if post['linked'] else '○'} {post['cosine']:.2f} {', '.join(map(_code, post['words']))}"


def _code(word: str) -> str:
    return f"`{word}`"
