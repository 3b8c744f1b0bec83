"""RBP, ERR, infAP and judged@k against the tools that define them; names as papers spell them."""

import gzip
import json
import random
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval
from ir_measures import ERR, Judged

from linker.base.errors import InputError
from linker.evaluation import evaluate
from linker.evaluation.names import parse
from tests.helpers import shared_data

Nested = dict[str, dict[str, int]]


def cases() -> list[tuple[Nested, dict[str, dict[str, float]]]]:
    rng = random.Random(3)
    return [
        (
            {
                str(t): {f"d{i}": rng.choice([-1, 0, 0, 1, 2, 3, 4]) for i in rng.sample(range(40), 20)}
                for t in range(1, 6)
            },
            {
                str(t): {
                    f"d{i}": round(rng.random() * 30) + i / 64
                    for i in rng.sample(range(40), rng.randint(3, 30))
                }
                for t in range(1, 5)
            },
        )
        for _ in range(25)
    ]


@pytest.mark.parametrize("level", [1, 2])
def test_the_tools_that_define_them_agree(level: int) -> None:
    for qrels, run in cases():
        mine = evaluate(qrels, run, "infAP judged@5,10 ERR@3,20 RBP(p=0.8) rbp.0.95", level=level)
        inferred = pytrec_eval.RelevanceEvaluator(qrels, ["infAP"], relevance_level=level).evaluate(run)
        for topic, values in inferred.items():
            assert mine.topic(topic)["infAP"] == pytest.approx(values["infAP"], abs=1e-14)
        for metric in ir_measures.judged.iter_calc([Judged @ 5, Judged @ 10], qrels, run):
            assert mine.topic(metric.query_id)[f"judged_{metric.measure['cutoff']}"] == metric.value
        for metric in ir_measures.gdeval.iter_calc([ERR @ 3, ERR @ 20], qrels, run):  # prints five digits
            value = mine.topic(metric.query_id)[f"err_{metric.measure['cutoff']}"]
            assert value == pytest.approx(metric.value, abs=6e-6)


@pytest.mark.parametrize("level", [1, 2])
def test_rbp_is_its_definition(level: int) -> None:
    for qrels, run in cases():
        mine = evaluate(qrels, run, "rbp.0.8,0.95", level=level)
        for topic, documents in run.items():
            order = sorted(documents, key=lambda d: (-documents[d], d))
            for p in (0.8, 0.95):
                gained = [p**i for i, d in enumerate(order) if qrels[topic].get(d, 0) >= level]
                assert mine.topic(topic)[f"rbp_{p}"] == pytest.approx((1 - p) * sum(gained), abs=1e-14)


def test_most_and_judged_only_shorten_the_ranking() -> None:
    for qrels, run in cases()[:5]:
        first = {t: dict(sorted(d.items(), key=lambda e: (-e[1], e[0]))[:4]) for t, d in run.items()}
        names = "infAP judged@10 rbp.0.8 err.20"
        assert dict(evaluate(qrels, run, names, most=4)) == dict(evaluate(qrels, first, names))
        some = {t: {d: s for d, s in docs.items() if qrels[t].get(d, -1) >= 0} for t, docs in run.items()}
        nonnegative = {t: {d: r for d, r in judged.items() if r >= 0} for t, judged in qrels.items()}
        assert dict(evaluate(qrels, run, names, judged_only=True)) == dict(evaluate(nonnegative, some, names))


def test_names_as_papers_and_ir_measures_spell_them() -> None:
    names = "AP MAP nDCG@10 P@5 Recall@100 R@5 RR MRR@10 Success@1 SetP SetR SetF Judged@10 ERR@20 RBP(p=0.5) infAP"
    assert [str(m) for m in parse(names)] == [
        "map", "recip_rank", "P_5", "recall_5", "recall_100", "ndcg_cut_10", "success_1", "set_P", "set_recall",
        "set_F", "recip_rank_cut_10", "infAP", "judged_10", "rbp_0.5", "err_20",
    ]  # fmt: skip
    titles = [
        m.title for m in parse("map mrr@10 ndcg@10 P@5 recall.100 iprec.0.1 success.1 rbp.0.8 bpref num_q")
    ]
    assert titles == [
        "num_q", "MAP", "bpref", "iPrec@0.1", "P@5", "Recall@100", "nDCG@10", "Success@1", "MRR@10", "RBP(p=0.8)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("P(rel=2)@5", "takes no parameter 'rel': give the relevance level"),
        ("RBP(p=2)", "a persistence must lie between 0 and 1"), ("RBP(p=0.8)@10", "takes no parameter"),
        ("nonsense(p=1)", "takes no parameter"), ("judged@0", "must be a positive integer"),
    ],
)  # fmt: skip
def test_what_a_name_cannot_say(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse(name)


def test_err_needs_relevances_up_to_four() -> None:
    with pytest.raises(InputError, match=r"relevances of 0 to 4, but there is 5"):
        evaluate({"q": {"a": 5}}, {"q": {"a": 1.0}}, "ERR@20")


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_bm25s_on_tweets_equals_trec_eval(tmp_path: Path) -> None:
    bm25s = pytest.importorskip("bm25s", reason="the extra 'bench' is not installed")
    folder = shared_data("tweets2claims")
    corpus, queries = read(folder / "corpus.jsonl.gz"), read(folder / "queries.jsonl.gz")
    with (folder / "qrels" / "test.tsv").open() as lines:
        links = [line.split() for line in list(lines)[1:]]
    judged: dict[str, dict[str, int]] = {}
    for topic, document, relevance in links:
        judged.setdefault(topic, {})[document] = int(relevance)
    judged_queries = [q for q in queries if q["_id"] in judged]
    index = bm25s.BM25()
    index.index(
        bm25s.tokenize([f"{d['title']} {d['text']}" for d in corpus], show_progress=False),
        show_progress=False,
    )
    tokens = bm25s.tokenize([q["text"] for q in judged_queries], show_progress=False)
    found, scores = index.retrieve(tokens, k=100, show_progress=False)
    rows = [
        f"{q['_id']} Q0 {corpus[d]['_id']} {rank} {score:.6f} bm25s\n"
        for q, ids, values in zip(judged_queries, found.tolist(), scores.tolist(), strict=True)
        for rank, (d, score) in enumerate(zip(ids, values, strict=True))
    ]
    (tmp_path / "run").write_text("".join(rows))
    with (tmp_path / "run").open() as lines:
        run = pytrec_eval.parse_run(lines)
    values = pytrec_eval.RelevanceEvaluator(judged, {"official", "ndcg", "success.1,5"}).evaluate(run)
    mine = evaluate(folder / "qrels" / "test.tsv", tmp_path / "run", ["official", "ndcg", "success.1,5"])
    assert mine.num_answered == len(judged) == 202
    for name, value in mine.items():
        if name != "num_q":
            expected = pytrec_eval.compute_aggregated_measure(name, [v[name] for v in values.values()])
            assert f"{value:.4f}" == f"{expected:.4f}", name
    assert mine["recip_rank"] > 0.6
