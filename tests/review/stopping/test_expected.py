"""The rule of pairs: its model, the links that it expects, and when a review with it stops."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from indexes.interface import Document
from linker.base.errors import InputError
from linker.engine import Engine, building
from linker.review.interface import Read, Seed
from linker.review.session import FindLimits, Review, find
from linker.review.settings import Settings
from linker.review.stopping import make
from linker.review.stopping.expected import (
    FIRMNESS,
    PRIOR,
    ExpectedLinks,
    LinkReads,
    LinksLeft,
    ReadModel,
    described,
)
from tests.review.memory_ledger import MemoryLedger


def reads(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of random reads, and whether each was a link."""
    chance = np.random.default_rng(seed)
    inputs = described(chance.normal(size=count), chance.integers(1, 30, count), chance.random(count) < 0.5)
    return inputs, chance.random(count) < expit(inputs @ np.array([-0.5, 1.4, 0.2, -2.0]))


def test_the_model_has_the_least_loss_and_without_reads_the_log_odds() -> None:
    inputs, links = reads(300)

    def loss(weights: np.ndarray) -> float:
        margin = np.where(links, 1, -1) * (inputs @ weights)
        return float(np.logaddexp(0, -margin).sum() + FIRMNESS @ (weights - PRIOR) ** 2 / 2)

    assert ReadModel(inputs, links).weights == pytest.approx(minimize(loss, PRIOR, tol=1e-9).x, abs=1e-3)
    model = ReadModel(*reads(0))
    assert model.log_odds(1.5, 7, linked=False) == pytest.approx(1.5)
    assert model.log_odds(1.5, 7, linked=True) == pytest.approx(0.5)


def test_the_model_converges_if_values_say_less_than_its_prior() -> None:
    generator, places = np.random.default_rng(0), np.arange(200) // 20 + 1
    inputs = described(generator.normal(0, 3, 200), places, np.zeros(200))
    links = generator.random(200) < expit(inputs @ np.array([-1.2, 0.4, -0.3, -1.0]))
    weights = ReadModel(inputs, links).weights
    slope = inputs.T @ (links - expit(inputs @ weights)) - FIRMNESS * (weights - PRIOR)
    assert np.abs(slope).max() < 1e-3


def test_what_is_left_is_a_sum_of_probabilities_with_its_error() -> None:
    model = ReadModel(*reads(300))
    unread, last = reads(40, seed=1)[0], described([-2.0], [100], [False])
    links = model.left(unread, last, [100])
    chances = [
        expit(model.log_odds(v, round(float(np.exp(log_rank))), linked=bool(has)))
        for _, v, log_rank, has in unread
    ]
    beyond = 100 * expit(model.log_odds(-2.0, 100, linked=False))
    assert links.expected == pytest.approx(sum(chances) + beyond)
    # The standard error, estimated by drawing weights from the normal approximation of the fit.
    near = np.linalg.inv(
        (reads(300)[0].T * (p := expit(reads(300)[0] @ model.weights)) * (1 - p)) @ reads(300)[0]
        + np.diag(FIRMNESS)
    )
    drawn = np.random.default_rng(2).multivariate_normal(model.weights, near / 100, 20_000)
    error = 100 * expit(unread @ drawn.T).sum(axis=0).var()
    binomial = sum(p * (1 - p) for p in chances)
    assert links.deviation**2 == pytest.approx(binomial + error, rel=0.05)
    assert links.high == pytest.approx(links.expected + 2 * links.deviation)


def test_reads_are_described_by_what_was_known_then() -> None:
    history = LinkReads()
    reads = [(number % 3, number % 4 == 0) for number in range(23)]
    inputs, links = [], []
    for position, (seed, is_link) in enumerate(reads):
        before = [link for other, link in reads[:position] if other == seed]
        inputs.append((float(position), len(before) + 1, any(before)))
        links.append(is_link)
        history.add(seed, float(position), None, is_link=is_link)
        history.fit(lambda _, score, __: score / 10)
    values, places, linked = (np.array(column) for column in zip(*inputs, strict=True))
    # Fits are due after 10 reads and whenever they have grown by a tenth: 10, 11, 13, 15, 17, 19, 21, 24 …
    model = ReadModel(described(values[:21] / 10, places[:21], linked[:21]), links[:21])
    assert history.log_odds(0, 0.3) == pytest.approx(model.log_odds(0.3, 9, linked=True))
    left = history.left([np.full(9, 0.3), np.full(12, -1.0), np.zeros(0)], [False, True, False])
    unread = described([0.3] * 2 + [-1.0] * 5, [8, 9, 8, 9, 10, 11, 12], [True] * 7)
    assert left == model.left(unread, described([-1.0], [12], [True]), [12])


def test_links_become_rarer_down_a_list_at_least_as_among_the_reads() -> None:
    # Of 60 seeds, half have a link: an outlier, mostly the first candidate. All other candidates are alike.
    values, reads = 2 - np.log(np.arange(1, 101)) / 50, list[tuple[int, float, int, bool, bool]]()
    for rank in range(25):
        for number in range(60):
            if number % 2 or not rank:
                is_link = (not rank and number % 2 == 0) or (rank, number) in ((1, 1), (4, 3))
                linked = (number == 1 and rank > 1) or (number == 3 and rank > 4)
                reads.append((number, float(values[rank]) + 4 * is_link, rank + 1, linked, is_link))
    history = LinkReads()
    for number, value, *_, is_link in reads:
        history.add(number, value, None, is_link=is_link)
    assert history.fit(lambda _, score, __: score)
    fitted = reads[: history._fitted]
    ranks, linked_before, links = (
        [read[2] for read in fitted],
        [read[3] for read in fitted],
        [read[4] for read in fitted],
    )
    model = ReadModel(described([read[1] for read in fitted], ranks, linked_before), links)
    power = -ReadModel(described(np.zeros(len(fitted)), ranks, linked_before), links).weights[2]

    def chance(rank: int) -> float:
        return float(expit(model.log_odds(float(values[rank - 1]), rank, linked=False)))

    assert power > 1
    assert chance(100) > 2 * (capped := chance(20) * (20 / 100) ** power)
    left = history.left([np.zeros(0)] * 60 + [values], [False] * 60 + [True])
    assert left
    falling = [min(chance(rank), chance(20) * (20 / rank) ** power) for rank in range(21, 101)]
    assert left.expected == pytest.approx(sum(map(chance, range(1, 21))) + sum(falling) + 100 * capped)


def test_the_rule_stops_when_the_expected_ones_leave_the_target_reached() -> None:
    rule = make("expected", 100_000, 0.9)
    assert isinstance(rule, ExpectedLinks)
    for _ in range(90):
        rule.update(Read(True))
    assert rule.state.reason.startswith("Read on: it cannot be estimated yet")
    rule.look = lambda: LinksLeft(4.0, 3.1)
    assert "about 4 relevant ones are expected among the unread, 11 at most, too many" in rule.state.reason
    rule.look = lambda: LinksLeft(4.0, 3.0)
    state = rule.state
    assert state.estimated
    assert "about 4 relevant ones are expected among the unread, 10 at most." in state.reason


def test_a_topic_has_no_such_rule() -> None:
    with pytest.raises(InputError, match="choose another one for a topic"):
        Settings(rule="expected")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Return an index of 400 documents: two words of their own, and four of thirty that all share."""
    directory: Path = tmp_path_factory.mktemp("pairs") / "index"
    building.create(directory, encoder="none")
    engine, chance = Engine(directory), np.random.default_rng(0)
    engine.add(
        Document(
            f"d{n}", f"own{n} other{n} " + " ".join(f"word{w}" for w in chance.choice(30, 4, replace=False))
        )
        for n in range(400)
    )
    return engine


def test_a_review_of_pairs_stops_and_continues_as_if_it_had_not_been_interrupted(engine: Engine) -> None:
    chance = np.random.default_rng(1)
    words = [" ".join(f"word{w}" for w in chance.choice(30, 6, replace=False)) for _ in range(60)]
    # The first 40 seeds name their document, the next ten only in part, the last ten have no link.
    names = [f"own{n} other{n}" if n < 40 else f"own{n}" if n < 50 else "" for n in range(60)]
    seeds = [Seed(f"s{n}", f"{name} {text}") for n, (name, text) in enumerate(zip(names, words, strict=True))]
    right = {(f"s{n}", f"d{n}") for n in range(50)}
    whole, parts = (MemoryLedger(seeds, unit="pairs") for _ in range(2))
    report = find(
        Review(engine, whole),
        lambda c: "relevant" if (c.seed, c.id) in right else "not",
        FindLimits(rule=True),
    )
    assert report.estimated
    assert report.stopped.startswith("Estimated: the target recall of 90% is reached")
    assert report.relevant >= 45
    assert report.read < 1000
    for most in (25, 57, None):
        review = Review(engine, parts)
        last = find(
            review, lambda c: "relevant" if (c.seed, c.id) in right else "not", FindLimits(most, rule=True)
        )
    assert [(j.seed, j.id) for j in parts.judgements()] == [(j.seed, j.id) for j in whole.judgements()]
    assert last.stopped == report.stopped
    # Most seeds have their link by then, and their other candidates wait.
    late = whole.judgements()[100:]
    assert sum(int(j.seed[1:]) < 40 for j in late) < len(late) / 2
