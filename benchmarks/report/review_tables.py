"""Tables for the pages: reviewing, stopping, and P(link) with promised precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report.cells import bracketed, dashed, renders

RATIOS = ("reads to 10, ratio", "reads to 0.8, ratio", "reads to 0.9, ratio", "reads to 0.95, ratio")
STEPS = {
    "upload_s": "upload, s",
    "index_s": "index, s",
    "first_document_s": "first document or row, s",
    "next_ms_p50": "next document or row, ms (median)",
    "next_ms_p95": "next document or row, ms (95 %)",
    "accept_s": "accept what a check certifies, s",
    "search_s": "search, s",
    "export_s": "export, s",
}


JOBS = {"story": "one story", "rows": "a match for each row"}


@renders("review")
def reads(results: Any) -> Iterator[str]:
    """Reads per relevant document at a recall of .95, and reads as a multiple of ASReview's."""
    yield "| | reads per relevant document at a recall of .95 [95 %] | topics | CPU ms per judgement |"
    for name in ("feedback", "BM25 by headlines"):
        row = results[name]
        cost = row.get("cpu_ms per judgement")
        figures = row["reads per relevant document at .95"]
        yield f"| {name} | {_ratio(figures)} | {figures['topics']} | {'' if cost is None else f'{cost:.1f}'} |"
    beside = results["ASReview"]["feedback beside it"]
    yield ""
    yield f"| reads ÷ those of ASReview {results['ASReview']['version']} [95 %] | | topics |"
    for key in RATIOS:
        if key in beside:
            yield f"| {key.removesuffix(', ratio')} | {_ratio(beside[key])} | {beside[key]['topics']} |"


@renders("review_across")
def across(results: Any) -> Iterator[str]:
    """Reads of a review across languages, as a multiple of those with nothing across."""
    shares, codes = ("0.8", "0.9", "0.95"), list(results["nothing"]["recall at R"])
    yield f"| {results['topics']} topics | reviews | {' | '.join(f'reads to {share}' for share in shares)} |"
    named = [(name, row) for name, row in results.items() if isinstance(row, dict) and "ratio" in row]
    for name, row in named:
        kind = "reads per relevant" if name == "nothing" else "ratio"
        what = f"{name}: reads per relevant document" if name == "nothing" else f"{name} ÷ nothing"
        cells = [_ratio(row[kind][f"reads to {share}"]) for share in shares]
        yield f"| {what} | {row['reviews']} | {' | '.join(cells)} |"
    yield ""
    yield f"| recall at R | {' | '.join(codes)} |"
    for name, row in named:
        recalls = [f"{row['recall at R'][code]:.2f}" for code in codes]
        yield f"| {name} | {' | '.join(recalls)} |"


@renders("page")
def page(results: Any) -> Iterator[str]:
    """How long a reviewer waits for the page."""
    posts, news = results["statements_xlsx"], results["news"]
    rows = results.get("rows", {})
    head = [
        f"one story: {posts['posts']:,} posts, {posts['articles']:,} articles (XLSX)",
        f"one story: {news['documents']:,} news",
        *([f"{rows['rows']:,} rows among {rows['claims']:,} claims (XLSX)"] if rows else []),
    ]
    yield f"| | {' | '.join(head)} |"
    for key, name in STEPS.items():
        if any(key in of for of in (posts, news, rows)):
            figures = (f"{of[key]:g}" if key in of else "" for of in (posts, news, rows)[: len(head)])
            yield f"| {name} | {' | '.join(figures)} |"
    if rows:
        yield ""
        yield (
            f"A check of {rows['checked']} rows drawn at random, then {rows['accepted']} accepted unread "
            f"(“{rows['offered']}”): {rows['wrong']} are wrong by the judgements of the data set."
        )
    if "first_verdict" in results:
        yield ""
        yield "| from the first file to the first verdict | seconds | clicks | words of the page |"
        for job, name in JOBS.items():
            row = results["first_verdict"][job]
            yield f"| {name} | {row['seconds']:g} | {row['clicks']} | {row['words']} |"


def _ratio(row: Any) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


TARGETS = ("0.8", "0.9", "0.95")
SEEDS = {"tweets2claims": "tweets", "statements2articles": "articles"}  # of reviews of pairs


@renders("review_pairs")
def pairs(results: Any) -> Iterator[str]:
    """When reviews of pairs stop, by set, number of seeds and target."""
    yield (
        "| seeds | without a link | target | reviews | ended | target reached | recall (5 %, median) | "
        "× oracle (median, 95 %) | reads |"
    )
    for row in results["stops"]:
        cells = [f"{row['seeds']} {SEEDS[row['set']]}", f"{row['without']:.0%}", f"{row['target']:g}"]
        cells += [f"{row['reviews']}", f"{row['ended']}"]
        if row["ended"]:
            recall = ", ".join(f"{share:.2f}" for share in row["recall"])
            times = ", ".join(f"{ratio:.1f}" for ratio in row["times_oracle"])
            cells += [dashed(row["reached"]), recall, times, f"{row['reads']:,.0f}"]
        else:
            cells += ["–"] * 4
        yield f"| {' | '.join(cells)} |"


@renders("stopping")
def rules(results: Any) -> Iterator[str]:
    """Every rule on the topics that were not used for any choice."""
    yield (
        f"**{results['reviews']:,} simulated reviews of {results['topics']} topics**; the table has those of one "
        "half of the topics, with 15 relevant documents or more. It shows the share of reviews that reached the "
        "target (95 % interval over topics), and the reads divided by those of an oracle that stops at the target:"
    )
    yield "| rule | .80 reached | .90 | .95 | × oracle at .80 | .90 | .95 |"
    for rule, rows in results["rules_test"].items():
        shares = [dashed(rows[t]["reached"]) if t in rows else "" for t in TARGETS]
        costs = [f"{rows[t]['times_oracle'][0]:.1f}" if t in rows else "" for t in TARGETS]
        yield f"| {rule} | {' | '.join([*shares, *costs])} |"
    default = results["rules_test_large"].get("urn", {})
    large = ", ".join(f"{default[t]['reached'][0]:.3f}" for t in TARGETS if t in default)
    costs_large = ", ".join(f"{default[t]['times_oracle'][0]:.1f} ×" for t in TARGETS if t in default)
    yield f"Topics of more than 100 relevant documents, default: reached {large} at {costs_large} the oracle's reads."
    choices = [results[half]["urn"] for half in ("chosen_on_dev", "chosen_on_test")]
    yield ""
    yield (
        "The default has w = 600 × (1 − target). The cheapest urn of this form that reached every target in 95 % of "
        f"the reviews was “{choices[0]}” on the other half of the topics, and “{choices[1]}” on the half reported "
        "here. All topics, default, " + _of_all(results["rules_all_topics"]["urn"])
    )
    few = results["fewer_than_15"]
    yield ""
    yield (
        f"Topics with fewer than 15 relevant documents: the default claimed something in {few['claims']} of "
        f"{few['reviews']} reviews."
    )


def _of_all(rows: Any) -> str:
    parts = [
        f"{t}: reached {dashed(row['reached'])} at {row['times_oracle'][0]:.1f} ×" for t, row in rows.items()
    ]
    return f"of {rows['0.9']['reviews']} reviews: {'; '.join(parts)}."


@renders("stopping.estimate")
def estimate(results: Any) -> Iterator[str]:
    """How often the interval for the number of relevant documents holds, and how wide it is."""
    found = results["estimate"]
    yield (
        f"{found['looks']:,} estimates during reviews of {found['topics']} topics, each with constants fitted to other "
        f"topics. The interval contained the true number in {dashed(found['held'])} of them. The estimate and the ends "
        "of the interval are medians, divided by the true number:"
    )
    yield "| share found | estimates | truth in the interval | truth not above it | lower end | estimate | upper end |"
    for name, row in found["phases"].items():
        ends = " | ".join(f"{row[end]:.2f}" for end in ("low", "likely", "high"))
        yield f"| {name} | {row['looks']:,} | {dashed(row['held'])} | {dashed(row['not_above'])} | {ends} |"


@renders("certificates")
def certificates(results: Any) -> Iterator[str]:
    """What the two certificates cost, how often they err, and what they notice."""
    fewest = min(row["reviews"] for row in results["settings"])
    yield f"Recorded orders of {results['topics']} topics, at least {fewest:,} audits per row:"
    yield (
        "| reviews | unread | begun at | target | price: exact | by the order | by the order ÷ exact (most) | "
        "wrong: exact | by the order | missed target noticed: exact | by the order |"
    )
    for row in results["settings"]:
        exact, order = row["exact"], row["order"]
        noticed = ["" if way["noticed"] is None else dashed(way["noticed"]) for way in (exact, order)]
        when = ".5 and .7" if row["when"] == "recall" else "the stop"
        ratio = f"{dashed(row['price_ratio'])} ({row['price_ratio_most']:.2f})"
        cells = [
            row["kind"], row["order_of"], when, f"{row['target']:g}", f"{exact['price_median']:,.0f}",
            f"{order['price_median']:,.0f}", ratio, dashed(exact["wrong"]), dashed(order["wrong"]), *noticed,
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


@renders("second_look")
def second_look(results: Any) -> Iterator[str]:
    """What second looks at doubtful verdicts cost, and the precision of the documents found after them."""
    yield (
        "| wrong verdicts | looks | topics | reads | looks ÷ reads | false finds ÷ reads | looks that met an error | "
        "precision before | after | .97 kept | recall before | after |"
    )
    for row in results["reviews"]:
        names = (
            "looks",
            "false_finds",
            "looks_at_errors",
            "precision_before",
            "precision_after",
            "kept_promise",
        )
        cells = [
            f"{row['wrong']:.0%}", "early" if row["early"] else "at the end", f"{row['topics']}",
            f"{row['reads'][0]:,.0f}",
            *(dashed(row[name]) for name in (*names, "recall_before", "recall_after")),
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    shares = " | ".join(f"{share:.1%}" for share in results["shares"])
    yield "The precision when looks, all of them at the end, had taken this share of the reads:"
    yield f"| wrong verdicts | {shares} |"
    for row in results["reviews"]:
        if row["wrong"] and not row["early"]:
            yield f"| {row['wrong']:.0%} | {' | '.join(dashed(value) for value in row['precision_at'])} |"


@renders("stopping.noise")
def noise(results: Any) -> Iterator[str]:
    """The effect of wrong judgements on the rules, on all topics."""
    yield "| judgements | rule | .80 reached | .90 | .95 | stopped before the end | × oracle at .80 | .90 | .95 |"
    for kind, table in results["noise"].items():
        for rule, rows in table.items():
            shares = [f"{rows[t]['reached'][0]:.3f}" for t in TARGETS]
            costs = [f"{rows[t]['times_oracle'][0]:.1f}" for t in TARGETS]
            estimated = min(rows[t]["estimated"] for t in TARGETS)
            yield f"| {kind} | {rule} | {' | '.join(shares)} | {estimated:.2f} | {' | '.join(costs)} |"


SETS = {
    "statements2articles": "statements → articles",
    "tweets2claims": "tweets → claims",
    "bbc-news": "headlines → news",
    "descriptions": "descriptions → pages",
}


@renders("precision.measures")
def measures(results: Any) -> Iterator[str]:
    """How good the probabilities of first hits are on held-out queries."""
    yield (
        "| set | scores | queries | calibration error (by chance alone) | Brier, below the base rate's | AUC "
        "| AUC of BM25's score |"
    )
    for kind, sets in results["measures"].items():
        for name, row in sets.items():
            error, gain = row["calibration_error"], row["brier_gain"]
            yield (
                f"| {SETS[name]} | {kind} | {row['test']:,} | {error[0]:.3f} [{error[1]:.3f}, {error[2]:.3f}] "
                f"({row['noise_floor']:.3f}) | {gain[0]:.0%} [{gain[1]:.0%}, {gain[2]:.0%}] | {bracketed(row['auc'])} "
                f"| {bracketed(row['auc_bm25'])} |"
            )


@renders("precision.splits")
def splits(results: Any) -> Iterator[str]:
    """In how many random splits a precision of .9 was kept, and how many links were kept."""
    yield (
        "| set | scores | links held out | promise kept (95 %) | plain threshold kept "
        "| precision under the promise, mean | share of the oracle's links (middle 90 %) | nothing promised |"
    )
    for kind, sets in results["splits"].items():
        for name, row in sets.items():
            low, high = row["promise_held_interval"]
            few, many = row["promise_coverage_middle_90"]
            yield (
                f"| {SETS[name.partition(',')[0]]} | {kind} | {row['learn']:,} | {row['promise_held']:.3f} [{low:.3f}, "
                f"{high:.3f}] | {row['plain_held']:.3f} | {row['promise_precision']:.3f} "
                f"| {row['promise_coverage']:.2f} [{few:.2f}, {many:.2f}] | {row['none']:.0%} |"
            )


@renders("precision.shift")
def shift(results: Any) -> Iterator[str]:
    """The precision on test of a threshold chosen on dev tweets, which are easier."""
    yield "| scores | right on dev | right on test | precision on test | warned of |"
    for kind, row in results["shift"].items():
        dev, test = row["dev"] or (0, 0), row["test"]
        warned = row["warning"].partition("(")[2].partition(":")[0] or "nothing"
        precision = "–" if row["precision"] is None else f"{row['precision']:.3f}"
        yield f"| {kind} | {dev[0]} of {dev[1]} | {test[0]} of {test[1]} | {precision} | {warned} |"


@renders("precision.drift")
def drift(results: Any) -> Iterator[str]:
    """How often a batch of 100 queries raises the warning."""
    yield "| calibrated on | scores | queries of the same set (95 %) | of another set, at least |"
    for kind, sets in results["drift"].items():
        for name, row in sets.items():
            same, low, high = row["the same"]
            other = min(value for key, value in row.items() if key != "the same")
            yield f"| {SETS[name]} | {kind} | {same:.3f} [{low:.3f}, {high:.3f}] | {other:.2f} |"


@renders("precision.cost")
def cost(results: Any) -> Iterator[str]:
    """CPU time per query on statements, with and without probabilities."""
    yield "| CPU-milliseconds per query | alone, with P(link) | without | 300 at once, with | without |"
    for kind, row in results["cost"].items():
        cells = [row[f"{how}_{told}"] for how in ("alone", "batch") for told in ("with", "without")]
        yield f"| {kind} | {' | '.join(f'{cell:.2f}' for cell in cells)} |"
