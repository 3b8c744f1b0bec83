"""Danovitch's case study on real posts: posts with a cosine of at least .7, posts read until N links, attention words.

`python -m benchmarks.case_study --work FOLDER` takes a star that `linker reproduce ast --work FOLDER` trained, the
articles of a test set with the most linked posts, and all posts of that set, ordered by cosine. Each article is shown
with the words to which its relay gives the most weight, with those of the accepted posts, and with the most and the
least similar posts (the paper's tables 3 and 4). Texts are not recorded, only single words. `linker evaluate-pairs` and
`linker explain` do the same for your own articles.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.encoders import folder as folders
from linker.encoders.interface import Encoder
from linker.papers.all_pairs.evaluate import evaluate_vectors
from linker.papers.reproduce.ast import ACCEPTED, UNTIL, settings, test_pairs
from linker.papers.reproduce.posts import sets
from linker.scoring.pairs.explaining import TextExplanation, explain

MODEL, WORDS = "ast-paper", 6  # how many words are shown
POSTS = 3  # how many of the most and the least similar posts are shown


def most_linked(data: str, work: Path, count: int) -> Iterator[tuple[str, list[str], list[int]]]:
    """Yield the text of each article, all posts of the test set, and the rows of those linked to it."""
    (one,) = sets(shared_data() / data, work, quick=False)
    asked = test_pairs(one, settings(one, MODEL, 0, 1, work, []))
    posts = sorted({post for post, _ in asked.links})
    linked = defaultdict(list)
    for post, article in asked.links:
        linked[article].append(posts.index(post))
    for article in sorted(linked, key=lambda one: (-len(linked[one]), one))[:count]:
        yield asked.documents[article], [asked.texts[post] for post in posts], linked[article]


def study(encoder: Encoder, article: str, posts: Sequence[str], linked: Sequence[int]) -> dict[str, Any]:
    """Return the paper's figures for an article: accepted posts, posts read until N links, and words."""
    vector, others = encoder.encode([article]), encoder.encode(posts)
    links = [(0, row) for row in linked]
    found = evaluate_vectors(vector, others, links, ranks=[1], thresholds=[ACCEPTED], until=UNTIL)
    (accepted,) = found.thresholds
    cosines = others @ vector[0]
    order = np.argsort(-cosines, kind="stable")
    read = [row for row in order.tolist() if cosines[row] >= ACCEPTED] or order[:1].tolist()
    parts = [explain(encoder, article, posts[row]).texts for row in read[:WORDS]]

    def post(row: int) -> dict[str, Any]:
        words = weightiest([explain(encoder, article, posts[row]).texts[1]])[: WORDS // 2]
        return {"cosine": round(float(cosines[row]), 4), "linked": int(row in linked), "words": words}

    return {
        "posts": len(posts),
        "linked": len(linked),
        "accepted": accepted.true_positives + accepted.false_positives,
        "right": accepted.true_positives,
        "until": {str(r.links): r.mean_tweets for r in found.until if r.links <= len(linked)},
        "first": [int(row in linked) for row in order[: 2 * WORDS].tolist()],
        "most similar": [post(row) for row in order[:POSTS].tolist()],
        "least similar": [post(row) for row in order[: -POSTS - 1 : -1].tolist()],
        "words": weightiest([parts[0][0]]),
        "words of posts": weightiest([part[1] for part in parts]),
    }


def weightiest(texts: Sequence[TextExplanation]) -> list[str]:
    """Return the words with the most weight in the relay's attention, summed over texts."""
    weights: dict[str, float] = defaultdict(float)
    for text in texts:
        attention = text.attention
        for token, weight in zip(text.tokens, [] if attention is None else attention.tolist(), strict=False):
            weights[token] += weight
    return sorted(weights, key=lambda token: -weights[token])[:WORDS]


@benchmark(
    seed=0,
    work=(Path, "folder of `linker reproduce ast`"),
    data=("tweets2claims", "a set of the shared data"),
    model=(0, "its seed"),
    articles=(3, "how many, those with the most links first"),
)
def measured(options: Arguments) -> Results:
    (model,) = (options.work / options.data / "models").glob(f"*/{MODEL}-{options.model}")
    encoder = folders.load(model)
    articles = most_linked(options.data, options.work, options.articles)
    rows = [study(encoder, *article) for article in articles]
    return {"accepted": ACCEPTED, "data": options.data, "rows": rows}
