"""P(link) of queries without a match, against held-out queries whose documents are not candidates."""

import numpy as np
import pytest

from indexes.dtypes import Float64Array
from indexes.interface import Document
from linker.corpora import read_corpus, read_queries
from linker.engine import building
from linker.engine.engine import Engine
from linker.scoring.ranking.candidates import Gatherer, PoolSettings
from linker.scoring.ranking.learning import gather_batches, learn, relevant_rows
from linker.scoring.ranking.ranker import RankedCandidates, Ranker
from tests.helpers import shared_data

LEARNED, HELD, OTHERS = 250, 150, 1500  # training posts, held-out posts, unlinked claims


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ranker, dict[str, RankedCandidates]]:
    """A ranker of posts and claims, and its results for held-out posts: known, without their claims, and nonsense."""
    data = shared_data("tweets2claims")
    lines = (data / "qrels" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    qrels = {query: {claim: 1.0} for query, claim, _ in (line.split("\t") for line in lines)}
    posts = [q for q in read_queries(data / "queries.jsonl.gz") if q.id in qrels][: LEARNED + HELD]
    wanted = {claim for post in posts for claim in qrels[post.id]}
    claims = [d for d in read_corpus(data / "corpus.jsonl.gz") if isinstance(d, Document)]
    others = [d for d in claims if d.id not in wanted][:OTHERS]
    directory = tmp_path_factory.mktemp("absent") / "index"
    building.create(directory, encoder="none", positions=True)
    Engine(directory).add([*others, *(d for d in claims if d.id in wanted)])
    collection = Engine(directory).collection
    ranker = learn(collection, None, posts[:LEARNED], qrels).ranker
    gatherer, held = Gatherer(collection, PoolSettings(), None), posts[LEARNED:]
    pool = gather_batches(gatherer, [post.text for post in held])
    relevant = relevant_rows(gatherer.ranking, held, qrels, pool.rows)
    random, words = np.random.default_rng(0), [word for post in posts for word in post.text.split()]
    nonsense = [" ".join(random.choice(words, len(post.text.split()))) for post in held]
    pools = {"known": pool, "hidden": pool.without(relevant), "nonsense": gather_batches(gatherer, nonsense)}
    return ranker, {name: ranker.rank(each) for name, each in pools.items()}


def test_nonsense_is_believed_no_more_than_a_post_whose_claim_is_gone(
    told: tuple[Ranker, dict[str, RankedCandidates]],
) -> None:
    _, answers = told
    first = {name: ranked.links[:, 0] for name, ranked in answers.items()}
    for share in (0.25, 0.5, 0.75, 0.9):
        nonsense, hidden, known = (np.quantile(first[n], share) for n in ("nonsense", "hidden", "known"))
        assert nonsense <= hidden < known


def test_in_company_of_its_like_neither_is_believed(told: tuple[Ranker, dict[str, RankedCandidates]]) -> None:
    ranker, answers = told

    def believed(name: str) -> Float64Array:
        return 1 - ranker.calibration.together(answers[name].none)

    assert np.median(believed("nonsense")) < 0.01
    assert believed("hidden").mean() < 0.1 < 0.8 < believed("known").mean()
