"""trec_eval's measures the slow and obvious way: one ranked list of relevances per topic, loops, no arrays."""

import math
import random
import struct
from collections.abc import Mapping

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]
CUTS = (1, 2, 3, 5, 10)
ALL = (
    "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall",
    "P.1,2,3,5,10", "recall.1,2,3,5,10", "11pt_avg", "ndcg", "ndcg_cut.1,2,3,5,10", "map_cut.1,2,3,5,10",
    "success.1,2,3,5,10", "set_P", "set_recall", "set_F",
)  # fmt: skip
POOL = (
    "d1", "d10", "d9", "9", "10", "009", "1e5", "é", "日本", "ñandú", "😀", "zz", "D", "-", "#", "d1a", "a" * 7,
    "a" * 8, "a" * 9, "a" * 16, "a" * 17, "b" * 40,
)  # fmt: skip
TOPICS = ("1", "2", "10", "t", "é", "q7", "q70", "12345678", "123456789")


def as_float32(score: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", score))[0])
    except OverflowError:
        return math.copysign(math.inf, score)


def ranked(docs: Mapping[str, float], compat: str) -> list[str]:
    """Document ids by score, then by bytes, both descending."""
    key = as_float32 if compat == "trec_eval-9" else float
    return sorted(docs, key=lambda d: (key(docs[d]), d.encode()), reverse=True)


def relevances(
    judged: Mapping[str, int], docs: Mapping[str, float], compat: str, judged_only: bool, most: int | None
) -> list[int]:
    """Relevance at each rank; −1 is unjudged."""
    rels = [max(judged.get(d, -1), -1) for d in ranked(docs, compat)][: most or None]
    return [r for r in rels if r >= 0] if judged_only else rels


def topic_values(
    judged: Mapping[str, int], rels: list[int], level: int = 1, compat: str = "trec_eval-9"
) -> dict[str, float]:
    """Return every measure of one topic from the relevances by rank."""
    R = sum(r >= level for r in judged.values())
    N = sum(0 <= r < level for r in judged.values())
    hits = [i for i, r in enumerate(rels, 1) if r >= level]
    precisions = [n / i for n, i in enumerate(hits, 1)]
    ap = sum(precisions) / R if R else 0.0
    v: dict[str, float] = {
        "num_q": 1, "num_ret": len(rels), "num_rel": R, "num_rel_ret": len(hits), "map": ap,
        "gm_map": math.log(max(ap, 0.00001)), "recip_rank": 1 / hits[0] if hits else 0.0,
        "Rprec": sum(i <= R for i in hits) / R if R else 0.0,
        "set_P": len(hits) / len(rels) if rels else 0.0, "set_recall": len(hits) / R if R else 0.0,
    }  # fmt: skip
    p, q = v["set_P"], v["set_recall"]
    v["set_F"] = 2 * p * q / (p + q) if hits else 0.0
    credit = 0.0
    for i in hits:
        above = sum(0 <= r < level for r in rels[:i])
        credit += 1 - min(above, R) / min(R, N) if above else 1
    v["bpref"] = credit / R if R else 0.0
    points = []
    for tenth in range(11):
        exact = tenth / 10 * R
        cutoff = int(exact + 0.9) if compat == "trec_eval-9" else math.floor(exact) + (exact % 1 >= 0.5)
        after = [p for n, p in enumerate(precisions, 1) if n >= cutoff]
        points.append(max(after, default=0.0))
        v[f"iprec_at_recall_{tenth / 10:.2f}"] = points[-1]
    v["11pt_avg"] = sum(points) / 11
    ideal = sorted((r for r in judged.values() if r > 0), reverse=True)
    for cut in (*CUTS, None):
        name = "ndcg" if cut is None else f"ndcg_cut_{cut}"
        best = dcg(ideal[:cut])
        v[name] = dcg(rels[:cut]) / best if best else 0.0
    for k in CUTS:
        found = sum(i <= k for i in hits)
        v[f"P_{k}"] = found / k
        v[f"map_cut_{k}"] = sum(precisions[:found]) / R if R else 0.0
        v[f"recall_{k}"] = found / R if R else 0.0
        v[f"success_{k}"] = float(found > 0)
    return v


def dcg(rels: list[int]) -> float:
    return sum(r / math.log2(i + 1) for i, r in enumerate(rels, 1) if r > 0)


def random_case(rng: random.Random) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return qrels and a run with at least one topic in common, full of ties and odd ids."""
    shared = rng.choice(TOPICS)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for topic in {shared, *rng.sample(TOPICS, rng.randint(0, 4))}:
        if topic == shared or rng.random() < 0.8:
            judged = {d: rng.choice((0, 1, 1, 2, 3, -1, -2)) for d in rng.sample(POOL, rng.randint(1, 12))}
            # the C code reads stale memory for a topic with only negative judgements
            if max(judged.values()) < 0:
                judged[next(iter(judged))] = 0
            qrels[topic] = judged
        if topic == shared or rng.random() < 0.8:
            score = rng.choice(SCORES)
            run[topic] = {d: score(rng) for d in rng.sample(POOL, rng.randint(1, len(POOL)))}
    return qrels, run


SCORES = (
    lambda rng: float(rng.randint(1, 3)),
    lambda rng: rng.random(),
    lambda rng: 1 + rng.randint(0, 3) * 2**-25,  # different as doubles, equal as float32
    lambda rng: -rng.random() * 1e-40,  # float32 subnormals
    lambda rng: rng.choice((math.inf, -math.inf, 0.0, -0.0, 1e39, 1e300, -1e39)),
)
