"""The tables of the learned ranker, of linking and of groups, for docs/ranking.md, linking.md and groups.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.report.cells import bracketed, renders

CASES = {"statements": "statements → articles", "star": "statements → articles", "tweets": "tweets → claims"}


@renders("rank.gains")
def gains(results: Any) -> Iterator[str]:
    """The ranker's gains on test, by set and encoder."""
    yield "| set | first stage | its MRR | the ranker's MRR | Success@1 | Success@5 | lead in MRR (95 %) | links |"
    for part, title in CASES.items():
        for name, case in results.get(part, {}).items():
            row = case["test"]
            cells = [
                *(f"{row[key]:.3f}" for key in ("before", "mrr", "s1", "s5")),
                bracketed(row["lead"], "+"),
            ]
            yield f"| {title} | {name} | {' | '.join(cells)} | {case['links']:,} |"


@renders("rank.curve")
def curve(results: Any) -> Iterator[str]:
    """MRR on test by the number of training links."""
    rows = {
        f"{title}, {name}": case
        for part, title in CASES.items()
        for name, case in results.get(part, {}).items()
        if "curve" in case
    }
    counts = sorted({int(count) for case in rows.values() for count in case["curve"]})
    yield f"| links | {' | '.join(f'{count:,}' for count in counts)} | all | first stage |"
    for name, case in rows.items():
        few = [f"{case['curve'][str(c)]['mrr']:.3f}" if str(c) in case["curve"] else "" for c in counts]
        yield f"| {name} | {' | '.join(few)} | {case['test']['mrr']:.3f} | {case['test']['before']:.3f} |"


@renders("rank.transfer")
def transfer(results: Any) -> Iterator[str]:
    """A ranker trained on the other sets, on the held-out set: its trees alone, and blended with BM25."""
    yield "| set left out | BM25 | trees of the other three | the same, blended with BM25 | its lead (95 %) |"
    for name, row in results.get("transfer", {}).items():
        alone = row["alone"]["mrr"]
        yield f"| {name} | {row['before']:.3f} | {alone:.3f} | {row['mrr']:.3f} | {bracketed(row['lead'], '+')} |"


@renders("rank.cost")
def cost(results: Any) -> Iterator[str]:
    """Time and size."""
    if "cost" not in results:
        return
    found = results["cost"]
    times, index = found["ms_per_query"], found["index"]
    with_, without = index["with positions"], index["without"]
    yield "| | |"
    yield f"| features, candidates of 780 words per CPU-second | {found['candidates_per_cpu_second']:,} |"
    yield f"| a query by itself, its encoding included | {times['query']:.1f} ms |"
    yield f"| one query among 300 in a call | {times['batch']:.1f} ms |"
    if "load" in found:
        yield f"| load average of the machine meanwhile | {found['load']:.0f} |"
    yield f"| trees | {found['trees']} |"
    yield f"| index with and without `--positions` | {with_['mib']:,.0f} and {without['mib']:,.0f} MiB |"
    yield f"| its build | {with_['cpu_seconds']:.0f} and {without['cpu_seconds']:.0f} CPU-seconds |"


@renders("joint")
def joint(results: Any) -> Iterator[str]:
    """Deciding together in one language next to each text alone, and next to other linking tools."""
    yield "| | known | decided | alone, MRR / S@1 | together | lead in MRR (95 %) |"
    statements, known = (results.get(name, {}) for name in ("statements", "known"))
    columns = {EQUAL[name]: results[name] for name in EQUAL if name in results}
    title = "statements → articles"
    if statements:
        columns[title] = rows = statements["test"]
        how = "one-to-one, asked for"
        yield _joint_row(title, "nothing of them; all 17,213 at once", how, rows["alone"], rows["together"])
    if statements and known:
        columns[title] = rows | {"known links taken": known["test"]}
        how = f"{known['competition']['competition']}, chosen"
        yield _joint_row(title, "14,344 links", how, rows["alone"], known["test"])
    tweets = results.get("tweets", {})
    for seed, row in tweets.items():
        if seed.isdigit():
            how = f"{row['competition']['competition']}, chosen"
            yield _joint_row(f"tweets → claims, seed {seed}", "999 links", how, row["alone"], row["together"])
    for name, title in EQUAL.items():
        if row := results.get(name):
            yield _joint_row(title, "nothing", "one-to-one, asked for", row["alone"], row["together"])
    if known:
        cost = known["cost"]
        yield ""
        yield (
            "17,213 statements and 19,125 articles with 14,344 links, in one process that also builds the index and "
            f"trains the ranker: {cost['cpu_minutes']:.1f} CPU-minutes, {cost['gib']:.1f} GiB."
        )

    if tweets:
        columns["tweets → claims"] = tweets | {name: tweets["0"][name] for name in ("alone", "together")}
    yield ""
    yield f"| MRR / S@1 | {' | '.join(columns)} |"
    for name in dict.fromkeys(name for row in columns.values() for name in row if not name.isdigit()):
        cells = [_both(row[name]) if name in row else "–" for row in columns.values()]
        yield f"| {LINKER.get(name, name)} | {' | '.join(cells)} |"


@renders("joint.orphans")
def orphans(results: Any) -> Iterator[str]:
    """P(link) if some texts have no document, by what is known: means over the seeds."""
    if not (sets := {name: results[part] for part, name in ORPHANS.items() if part in results}):
        return
    yield "| set, known links | no document | error of P(link) | by chance | links with P ≥ .9 | of these right |"
    for name, seeds in sets.items():
        for share in (key for key in seeds["0"] if key != "nonsense"):
            yield f"| {name} | {_orphans([of[share] for of in seeds.values()])}"
        medians = [of["nonsense"]["median"] for of in seeds.values()]
        yield f"| {name} | random words: median P(link) | {np.mean(medians):.3f} | | | |"


@renders("joint.few")
def few(results: Any) -> Iterator[str]:
    """P(link) of few texts of which nothing is known, by the number of texts per call."""
    if not (sizes := results.get("few_texts")):
        return
    shares = [share for share in next(iter(sizes.values())) if share != "nonsense"]
    names = [f"{sizes[next(iter(sizes))][share]['orphans']:.0%} (by chance)" for share in shares]
    yield f"| texts per call | error at {' | at '.join(names)} | random words: median P(link) |"
    for size, row in sizes.items():
        cells = [f"{row[share]['error']:.3f} ({row[share]['chance']:.3f})" for share in shares]
        yield f"| {size} | {' | '.join(cells)} | {row['nonsense']['median']:.3f} |"


def _orphans(rows: list[Any]) -> str:
    """Return the cells of a share of orphans from the rows of all seeds."""
    error, chance, share = ([row[key] for row in rows] for key in ("error", "chance", "orphans"))
    sure = sum(row["sure"] for row in rows)
    right = f"{sum(row['precision'] * row['sure'] for row in rows) / sure:.3f}" if sure else ""
    spread = f" [{min(error):.3f}, {max(error):.3f}]" if min(error) < max(error) else ""
    return (
        f"{np.mean(share):.0%} | {np.mean(error):.3f}{spread} | {np.mean(chance):.3f} | {sure:,} | {right} |"
    )


def _joint_row(title: str, known: str, how: str, alone: Any, together: Any) -> str:
    return f"| {title} | {known} | {how} | {_both(alone)} | {_both(together)} | {bracketed(together['lead'], '+')} |"


def _both(row: Any) -> str:
    return f"{row['mrr']:.3f} / {row['s1']:.3f}"


ORPHANS = {
    "orphans_taught": "tweets → claims, 999 links",
    "orphans": "tweets → claims, none",
    "orphan_statements": "statements → articles, none",
}
EQUAL = {"headlines": "headlines → articles, 800", "descriptions": "descriptions → pages, 800"}
LINKER = {
    "alone": "linker, each text alone",
    "together": "linker, together",
    "together, MiniLM": "linker, together, with MiniLM",
    "known links taken": "linker, together, 14,344 links known",
}
CORPORA = {
    "tweets": "tweets of one claim", "claims": "tweets and claims", "statements": "statements and articles",
    "bbc-news": "BBC news, 5 categories", "news-topics": "newswire, 39 topics",
}  # fmt: skip


@renders("passages")
def passages(results: Any) -> Iterator[str]:
    """How often the right sentence is named, and how far linker is ahead."""
    sets = {
        "digests": "digests of five articles",
        "sentences": "forty sentences",
        "half the words": "half the words",
    }
    rows = {name: results.get(name, {}) for name in sets}
    titles = (f"{title} ({rows[name]['cases']:,})" for name, title in sets.items())
    yield f"| | {' | '.join(titles)} |"
    for system in (name for name, row in rows["digests"].items() if isinstance(row, dict)):
        cells = []
        for of in rows.values():
            lead = of[system].get("lead of linker")
            cells.append(f"{of[system]['right']:.3f}" + (f" ({bracketed(lead, '+')})" if lead else ""))
        yield f"| {system} | {' | '.join(cells)} |"
    chances = (f"{of['chance']:.3f}" for of in rows.values())
    yield f"| by chance | {' | '.join(chances)} |"


@renders("groups")
def groups(results: Any) -> Iterator[str]:
    """B-cubed, the adjusted Rand index and pairs of all systems, and the lead of linker without links."""
    yield "| corpus | system | B³ P / R / F1 | ARI | pairs P / R | lead of linker without links in B³ F1 (95 %) |"
    for name, title in CORPORA.items():
        rows = results.get(name, {})
        for system, row in rows.items():
            if isinstance(row, dict):
                lead = bracketed(row["lead of linker"], "+") if "lead of linker" in row else ""
                b3 = " / ".join(f"{row[f'b3_{part}']:.3f}" for part in ("precision", "recall", "f1"))
                pairs = f"{row['pair_precision']:.3f} / {row['pair_recall']:.3f}"
                yield f"| {title} ({rows['documents']:,}) | {system} | {b3} | {row['ari']:.3f} | {pairs} | {lead} |"


@renders("groups.promise")
def promises(results: Any) -> Iterator[str]:
    """How often promised precisions of pairs were kept."""
    found = results.get("promise", {})
    yield "| promised precision | certified | kept | share of pairs that stay grouped |"
    for precision, row in found.items():
        if isinstance(row, dict):
            cells = " | ".join(f"{row[name]:.1%}" for name in ("given", "kept", "share_of_pairs"))
            yield f"| {float(precision):g} | {cells} |"


@renders("groups.arriving")
def arriving(results: Any) -> Iterator[str]:
    """What new posts cost, by the posts that arrive in one update."""
    found = {
        name.removeprefix("arriving-"): row for name, row in results.items() if name.startswith("arriving-")
    }
    new = [name.removeprefix("ms_") for name in next(iter(found.values()), {}) if name.startswith("ms_")]
    titles = " | ".join(f"{int(count):,} per update" for count in new)
    yield f"| posts | first grouping: CPU-minutes | peak memory | CPU-ms per new post: {titles} |"
    for size, row in found.items():
        cells = " | ".join(f"{row[f'ms_{count}']:,.1f}" for count in new)
        yield f"| {int(size):,} | {row['cpu_s'] / 60:.2f} | {row['peak_mib'] / 1024:.2f} GiB | {cells} |"


@renders("groups.drift")
def drift(results: Any) -> Iterator[str]:
    """How far the groups of arriving documents differ from those of all documents."""
    found = results.get("drift", {})
    yield (
        "| corpus | B³ F1 between both, mean / lowest | queries per document | B³ F1, arriving | all together | "
        "difference (95 %) |"
    )
    for name, row in found.items():
        title = "news, judged pairs" if name == "news" else CORPORA[name]
        cells = f"{row['mean']:.3f} / {row['least']:.3f} | {row['queries']:.1f}"
        gold = (
            f"{row['arriving']:.3f} | {row['together']:.3f} | {bracketed(row['lead'], '+')}"
            if "lead" in row
            else "| |"
        )
        yield f"| {title} ({row['documents']:,}) | {cells} | {gold} |"


@renders("groups.cost")
def group_cost(results: Any) -> Iterator[str]:
    """The cost of grouping by the size of the corpus."""
    found = results.get("cost", {})
    yield "| documents | words, mean | CPU-minutes | documents per CPU-minute | peak memory |"
    for size, row in found.items():
        if isinstance(row, dict):
            memory = f"{row['peak_mib'] / 1024:.2f} GiB"
            cells = f"{row['words']:,} | {row['cpu_s'] / 60:.2f} | {row['per_cpu_minute']:,} | {memory}"
            yield f"| {int(size):,} | {cells} |"
    if found:
        yield (
            f"| {found['extrapolated_to']:,}, extrapolated | | {found['cpu_minutes']:.1f} (exponent "
            f"{found['exponent']:.2f}) | | {found['gib']:.1f} GiB (exponent {found['memory_exponent']:.2f}) |"
        )
