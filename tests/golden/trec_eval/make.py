"""Rewrite the golden files: `python -m tests.golden.trec_eval.make`. It uses nothing from `linker`.

Version 9: values by topic from pytrec_eval-terrier, which is trec_eval 9's C code. Version 10: from the slow oracle
of tests/evaluation, since no package offers version 10. Names, their order, the printed form and what -c does to
num_q, num_rel and gm_map: as in trec_eval's own test outputs (usnistgov/trec_eval, test/out.test.aq, out.test.aqcM).
"""

import math
import random
from pathlib import Path

import pytrec_eval

from tests.evaluation.oracle import CUTS, relevances, topic_values

HERE = Path(__file__).parent
COUNTS = ("num_ret", "num_rel", "num_rel_ret")
NAMES = (
    *COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank", *(f"iprec_at_recall_{i / 10:.2f}" for i in range(11)),
    *(f"P_{k}" for k in CUTS), *(f"recall_{k}" for k in CUTS), "11pt_avg", "ndcg", *(f"ndcg_cut_{k}" for k in CUTS),
    *(f"success_{k}" for k in CUTS), "set_P", "set_recall", "set_F",
)  # fmt: skip
Values = dict[str, dict[str, float]]


def make_case() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return 14 judged topics, two of them without hits, and a run with ties, near-ties and one surplus topic."""
    rng = random.Random(14)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for i, topic in enumerate(["1", "2", "10", "11", "t-a", "t-é", *(f"q{n}" for n in range(8))]):
        docs = [f"doc{n}" for n in rng.sample(range(30), 20)] + ["9", "10", "é", "日本"]
        qrels[topic] = {d: rng.choice((0, 0, 1, 1, 2, -1)) for d in rng.sample(docs, rng.randint(3, 14))}
        qrels[topic][docs[0]] = 0 if i == 3 else 1
        if i == 3:
            qrels[topic] = {d: min(r, 0) for d, r in qrels[topic].items()}
        if i not in (5, 9):
            step = (0.25, 1e-9, 0.01)[i % 3]  # many ties; ties only in float32; hardly any
            run[topic] = {d: 5 + step * rng.randint(0, 60) for d in docs}
    run["unjudged"] = {"9": 1.0}
    return qrels, run


def by_topic(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], version: str) -> Values:
    """Return each answered topic's values."""
    if version == "9":
        cut = ",".join(map(str, CUTS))
        plain = {n for n in NAMES if not n[-1].isdigit()} | {"11pt_avg", "iprec_at_recall"}
        names = plain | {f"{m}.{cut}" for m in ("P", "recall", "success", "ndcg_cut")}
        reference: Values = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
        return reference
    shared = set(qrels) & set(run)
    return {
        t: topic_values(
            qrels[t], relevances(qrels[t], run[t], "trec_eval-10", False, None), 1, "trec_eval-10"
        )
        for t in shared
    }


def line(name: str, topic: str, value: float) -> str:
    shown = f"{value:.0f}" if name.startswith("num") else f"{value:6.4f}"
    return f"{name:<22}\t{topic}\t{shown}\n"


def output(qrels: dict[str, dict[str, int]], values: Values, complete: bool) -> str:
    """Return what `trec_eval -q` prints, with -c if `complete`."""
    topics = sorted(values, key=str.encode)
    number = len(qrels) if complete else len(values)
    lines = [line(n, t, values[t][n]) for t in topics for n in NAMES if n != "gm_map"]
    lines += [f"{'runid':<22}\tall\tgolden\n", line("num_q", "all", number)]
    for name in NAMES:
        total = 0.0
        for t in topics:
            total += values[t][name]
        if name == "num_rel" and complete:
            total = sum(r >= 1 for judged in qrels.values() for r in judged.values())
        elif name == "gm_map":
            total = math.exp((total + (number - len(values)) * math.log(0.00001)) / number)
        elif name not in COUNTS:
            total /= number
        lines.append(line(name, "all", total))
    return "".join(lines)


def main() -> None:
    qrels, run = make_case()
    judged = [f"{t} 0 {d} {r}\n" for t in qrels for d, r in qrels[t].items()]
    (HERE / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    rows = [f"{t} Q0 {d} {i} {s!r} golden\n" for t in run for i, (d, s) in enumerate(run[t].items())]
    (HERE / "run.txt").write_text("".join(rows), encoding="utf-8")
    for version in ("9", "10"):
        values = by_topic(qrels, run, version)
        (HERE / f"q-{version}.txt").write_text(output(qrels, values, complete=False), encoding="utf-8")
        (HERE / f"qc-{version}.txt").write_text(output(qrels, values, complete=True), encoding="utf-8")


if __name__ == "__main__":
    main()
