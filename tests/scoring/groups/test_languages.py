"""Evidence for pairs in two languages, and P(same story) from it: a slow oracle, and worked numbers."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from indexes.interface import Document
from linker.engine import building, grouping
from linker.engine.engine import Engine
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import FOUND, NAMES, Findings, PairEvidence, fit_across, join_findings
from linker.scoring.groups.languages import (
    EXPECTED,
    LISTED,
    change_of_odds,
    language_of,
    leads,
    number_languages,
)
from linker.scoring.groups.last_grouping import LastGrouping
from tests.helpers import HashEncoder


def slow(lists: dict[int, dict[int, float]], languages: list[int], i: int, j: int, cosine: float) -> float:
    """Return the lead of j for i, in cosines; NaN if i has no candidates."""
    if not lists.get(i):
        return math.nan
    ordered = sorted(lists[i].values(), reverse=True)
    third = [c for k, c in lists[i].items() if k != j and languages[k] == languages[j]]
    return cosine - max([*third, ordered[min(len(ordered), LISTED) - 1]])


@given(st.integers(0, 2**32 - 1))
def test_leads_are_those_of_the_slow_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    languages = rng.integers(-1, 3, count)
    cosines = rng.random((count, count))
    cosines += cosines.T
    lists: dict[int, dict[int, float]] = {}
    for i in range(count):
        others = [j for j in range(count) if j != i and rng.random() < 0.6]
        if others and rng.random() < 0.8:
            lists[i] = {j: float(cosines[i, j]) for j in others}
    found = [(i, j, c) for i, near in lists.items() for j, c in near.items()]
    rng.shuffle(found)
    one, other = (np.array([f[at] for f in found], np.int64) for at in (0, 1))
    near = np.array([f[2] for f in found], np.float64)
    pairs = np.array(sorted({(min(f[:2]), max(f[:2])) for f in found}), np.int64).reshape(-1, 2)
    pairs = pairs[languages[pairs[:, 0]] != languages[pairs[:, 1]]]
    fast = leads(one, other, near, languages, pairs, cosines[tuple(pairs.T)])
    spreads = [
        max(n.values()) - sorted(n.values(), reverse=True)[min(len(n), LISTED) - 1] for n in lists.values()
    ]
    unit = max(float(np.median(spreads)), 1e-9) if spreads else 1.0
    for (i, j), row in zip(pairs.tolist(), fast.tolist(), strict=True):
        each = [slow(lists, languages.tolist(), *ends, float(cosines[i, j])) for ends in ((i, j), (j, i))]
        known = [lead / unit for lead in each if not math.isnan(lead)]
        assert row == pytest.approx([min(known), max(known)])


def test_the_language_of_a_text_may_be_unknown() -> None:
    english, german = (
        "this is the house of the man and it was not for you",
        "das ist nicht die Stadt und der Mann",
    )
    names = [language_of(text) for text in (english, "17 %", german, english)]
    assert names == ["english", "", "german", "english"]
    found = number_languages(names).tolist()
    assert found[0] == found[3] >= 0
    assert found[1] == -1
    assert found[2] not in (-1, found[0])
    assert number_languages([]).tolist() == []


def test_odds_stay_if_the_share_is_as_in_training_and_fall_if_hardly_any_pair_belongs_together() -> None:
    assert change_of_odds(np.empty(0), 0.3) == pytest.approx(0)
    certain = np.repeat([-30.0, 30.0], [70, 30])
    assert change_of_odds(certain, 0.3) == pytest.approx(0, abs=1e-6)
    # 1,000 pairs that are certainly apart: the share is .3 × 40 / 1,040
    share = 0.3 * EXPECTED / (1000 + EXPECTED)
    change = math.log(share / (1 - share)) - math.log(0.3 / 0.7)
    assert change_of_odds(np.full(1000, -30.0), 0.3) == pytest.approx(change, abs=1e-6)


def evidence(near: np.ndarray, languages: np.ndarray | None) -> PairEvidence:
    """Return the evidence of documents that all found each other, whose cosines are given, and which share no words."""
    count = len(near)
    one, other = np.nonzero(~np.eye(count, dtype=bool))
    values = np.zeros((len(one), len(FOUND) + (languages is not None)), np.float32)
    if languages is not None:
        values[:, -1] = near[one, other]
    findings = Findings(one, other, values, np.zeros(len(one), bool))
    texts = csr_array(np.zeros((count, 1), np.float32))
    return join_findings(findings, (texts, np.zeros(1, np.uint64)), np.full(count, np.nan), languages)


def story_pairs(stories: int, seed: int = 0) -> tuple[PairEvidence, np.ndarray]:
    """Return the evidence of stories with a document in each of two languages, and which pairs are of one story."""
    rng = np.random.default_rng(seed)
    story = np.arange(2 * stories) % stories
    noise = rng.normal(0.3, 0.05, (2 * stories, 2 * stories))
    near = np.where(story[:, None] == story, 0.7, (noise + noise.T) / 2)
    found = evidence(near, np.arange(2 * stories) // stories)
    return found, story[found.pairs[:, 0]] == story[found.pairs[:, 1]]


def test_translations_are_probable_without_links_and_other_pairs_are_not() -> None:
    found, same = story_pairs(30)
    probabilities = SHIPPED.adapt(found).probabilities(found)
    assert probabilities[same].min() > 0.5 > probabilities[~same].max()


def test_pairs_in_one_language_keep_their_probabilities_with_an_encoder() -> None:
    near = np.random.default_rng(0).random((12, 12))
    found = evidence(near + near.T, np.zeros(12, np.int64))
    words = evidence(near, None)
    assert words.names == NAMES
    assert SHIPPED.adapt(words) is SHIPPED
    assert not found.across.any()
    assert not found.values[:, -2:].any()
    assert SHIPPED.adapt(found).probabilities(found) == pytest.approx(SHIPPED.probabilities(words))


def test_weights_of_leads_are_learned_from_pairs_in_two_languages_only() -> None:
    found, same = story_pairs(20)
    (less, more, offset), share = fit_across([(found, same)])
    assert less + more > 0 > offset
    assert share == pytest.approx(same[found.across].mean(), abs=1e-4)
    other = dataclasses.replace(found, values=np.where(found.across[:, None], found.values, 9.0))
    assert fit_across([(other, same)]) == ((less, more, offset), share)


def test_with_an_encoder_the_next_grouping_detects_the_languages_of_new_documents_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    building.create(tmp_path / "i", encoder="hash", language="english", positions=True)
    texts = [
        "the rain of the night",
        "der Regen der Nacht und die Stadt",
        "voters elect the parliament",
        "17 %",
    ]
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    detected: list[str] = []

    def detect(text: str) -> str:
        detected.append(text)
        return language_of(text)

    monkeypatch.setattr(grouping, "language_of", detect)
    with Engine(tmp_path / "i", encoder=HashEncoder()) as engine:
        for known in (3, 4, 4):
            engine.add([d for d in documents[:known] if d.id not in engine.collection.rows])
            rows = engine.collection.rows.locate([d.id for d in documents[:known]])
            kept = LastGrouping(tmp_path / "findings.npz", documents[:known])
            grouping.group(engine.collection, documents[:known], rows, kept=kept)
            kept.save()
    assert detected == texts
