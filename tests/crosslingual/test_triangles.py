"""Links through a third language: agreeing evidence raises probabilities, contradicting evidence lowers them."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from linker import triangulate
from linker.base.errors import InputError
from linker.crosslingual.triangles import EDGE, add_paths, clusters, combine, masses, network
from tests.helpers import linker

DE_EN, FR_EN, DE_FR = ("de", "en"), ("fr", "en"), ("de", "fr")


def slow_dempster(p: list[float], q: list[float]) -> list[float]:
    """Dempster's rule over all pairs of focal elements; the last one is the whole frame."""
    first, second = [*p, 1 - sum(p)], [*q, 1 - sum(q)]
    whole, joint, conflict = len(p), [0.0] * (len(p) + 1), 0.0
    for (i, a), (j, b) in product(enumerate(first), enumerate(second)):
        if i == j or j == whole:
            joint[i] += a * b
        elif i == whole:
            joint[j] += a * b
        else:
            conflict += a * b
    return [value / (1 - conflict) for value in joint[:-1]]


MASSES = st.lists(st.floats(0, 0.3), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(MASSES, MASSES)
def test_evidence_is_joined_by_dempsters_rule(p: list[float], q: list[float]) -> None:
    found = combine(sp.csr_array(np.array([p])), sp.csr_array(np.array([q]))).toarray()[0]
    np.testing.assert_allclose(found, slow_dempster(p, q), atol=1e-12)


def test_without_a_conflict_it_is_the_noisy_or() -> None:
    found = combine(sp.csr_array(np.array([[0.6, 0]])), sp.csr_array(np.array([[0.9, 0]]))).toarray()
    np.testing.assert_allclose(found, [[1 - 0.4 * 0.1, 0]])


def test_the_best_keep_their_probability_where_a_row_exceeds_one() -> None:
    found = masses(sp.csr_array(np.array([[0.6, 0.9, 0.2], [0.1, 0.2, 0], [0, 1, 0]]))).toarray()
    np.testing.assert_allclose(found, [[0.1 - EDGE, 0.9, 0], [0.1, 0.2, 0], [0, 1 - EDGE, 0]], atol=1e-12)


def probability(found: object, pair: tuple[str, str], source: str, target: str) -> float:
    matrix = found.between(*pair)  # type: ignore[attr-defined]  # a Network
    rows, columns = (found.ids[code].index(id_) for code, id_ in zip(pair, (source, target), strict=True))  # type: ignore[attr-defined]
    return float(matrix[rows, columns])


def test_a_pair_that_was_never_linked_is_composed() -> None:
    found = add_paths(
        network(
            [(DE_EN, {"d1": {"e1": 0.9}, "d2": {"e2": 0.5}}), (FR_EN, {"f1": {"e1": 0.8}, "f2": {"e9": 0.9}})]
        )
    )
    assert probability(found, DE_FR, "d1", "f1") == pytest.approx(0.72)
    matrix = found.between(*DE_FR)
    assert matrix is not None
    assert matrix.nnz == 1


def test_agreement_raises_and_contradiction_lowers() -> None:
    """Direct d–f .6; English confirms it in the first case and points to another French page in the second."""
    direct = (DE_FR, {"d": {"f": 0.6}})
    agree = add_paths(network([direct, (DE_EN, {"d": {"e": 0.9}}), (FR_EN, {"f": {"e": 0.9}})]))
    assert probability(agree, DE_FR, "d", "f") == pytest.approx(1 - 0.4 * (1 - 0.81))
    other = add_paths(
        network([direct, (DE_EN, {"d": {"e": 0.9}}), (FR_EN, {"g": {"e": 0.9}, "f": {"x": 0.1}})])
    )
    p, q = slow_dempster([0.6, 0], [0, 0.81])
    assert p < 0.6
    assert probability(other, DE_FR, "d", "f") == pytest.approx(p)
    assert probability(other, DE_FR, "d", "g") == pytest.approx(q)


def test_a_link_has_to_hold_from_both_of_its_pages() -> None:
    """From d1, f has no rival; from f, d1 has, since d2 claims it as well."""
    found = add_paths(network([(DE_FR, {"d1": {"f": 0.5}, "d2": {"f": 0.9}})]))
    assert probability(found, DE_FR, "d1", "f") == pytest.approx(0.1 - EDGE)
    assert probability(found, DE_FR, "d2", "f") == pytest.approx(0.9)


def test_known_links_are_certain_and_rule_others_out() -> None:
    found = network(
        [(DE_EN, {"d1": {"e1": 0.9}, "d2": {"e2": 0.5, "e1": 0.4}})], [(("en", "de"), {"e1": {"d2": 1}})]
    )
    assert probability(found, DE_EN, "d2", "e1") == 1
    links = found.between(*DE_EN)
    assert links is not None
    assert links.nnz == 1  # d1–e1 and d2–e2 were removed


def test_the_direction_of_a_run_does_not_matter() -> None:
    one = add_paths(network([(DE_EN, {"d": {"e": 0.9}}), (FR_EN, {"f": {"e": 0.8}})]))
    other = add_paths(network([(DE_EN, {"d": {"e": 0.9}}), (("en", "fr"), {"e": {"f": 0.8}})]))
    assert probability(one, DE_FR, "d", "f") == probability(other, DE_FR, "d", "f")


def test_a_cluster_has_one_page_per_language() -> None:
    """d2–e1 would join two German pages; d2 keeps its French one."""
    found = network(
        [
            (DE_EN, {"d1": {"e1": 0.9}, "d2": {"e1": 0.7}}),
            (FR_EN, {"f1": {"e1": 0.8}}),
            (DE_FR, {"d2": {"f2": 0.6}, "d3": {"f3": 0.4}}),
        ]
    )
    assert [(c.pages, c.probability) for c in clusters(found, 0.5)] == [
        ({"de": "d1", "en": "e1", "fr": "f1"}, 0.8),
        ({"de": "d2", "fr": "f2"}, 0.6),
    ]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_clusters_and_probabilities_are_consistent_whatever_is_claimed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = {code: [f"{code}{i}" for i in range(6)] for code in ("de", "en", "fr", "tr")}
    runs = []
    for pair in (DE_EN, FR_EN, DE_FR, ("tr", "en")):
        scores = {s: dict(zip(names[pair[1]][:4], rng.random(4), strict=True)) for s in names[pair[0]]}
        runs.append((pair, scores))
    found = add_paths(network(runs))
    for matrix in found.links.values():
        assert (matrix.data > 0).all()
        assert (np.asarray(matrix.sum(axis=1)) <= 1).all()
        assert (np.asarray(matrix.sum(axis=0)) <= 1).all()
    pages = [page for cluster in clusters(found, 0.2) for page in cluster.pages.items()]
    assert len(pages) == len(set(pages))


def run(path: Path, lines: str, languages: list[str] | None) -> Path:
    path.write_text(lines)
    if languages:
        Path(f"{path}.json").write_text(json.dumps({"languages": languages}))
    return path


def test_the_command_writes_runs_and_clusters(tmp_path: Path) -> None:
    first = run(tmp_path / "a.run", "d1 Q0 e1 1 .9 x\nd1 Q0 e2 2 .1 x\nd2 Q0 e2 1 .8 x\n", ["de", "en"])
    second = run(tmp_path / "b.run", "f1 Q0 e1 1 .9 x\n", None)
    (tmp_path / "known").write_text("f2 0 e2 1\n")
    out = tmp_path / "out"
    done = linker(
        "triangulate", first, f"fr-en={second}", "--known", f"fr-en={tmp_path / 'known'}", "--out", out,
        "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["linked"] == {"de-en": 2, "fr-en": 2, "de-fr": 2}
    assert sorted(p.name for p in out.glob("*.run")) == ["de-en.run", "de-fr.run", "fr-en.run"]
    lines = [line.split() for line in (out / "de-fr.run").read_text().splitlines()]
    assert [(a, b) for a, _, b, r, *_ in lines if r == "1"] == [("d1", "f1"), ("d2", "f2")]
    about = json.loads((out / "de-fr.run.json").read_text())
    assert (about["direct"], about["through"]) == (False, ["en"])
    found = [json.loads(line) for line in (out / "clusters.jsonl").read_text().splitlines()]
    assert [c["pages"] for c in found] == [
        {"de": "d1", "en": "e1", "fr": "f1"},
        {"de": "d2", "en": "e2", "fr": "f2"},
    ]  # fmt: skip


def test_mistakes_are_named_with_their_remedy(tmp_path: Path) -> None:
    good = run(tmp_path / "a.run", "d1 Q0 e1 1 .9 x\n", ["de", "en"])
    bare = run(tmp_path / "b.run", "f1 Q0 e1 1 .9 x\n", None)
    same = run(tmp_path / "c.run", "f1 Q0 e1 1 .9 x\n", ["und", "und"])
    high = run(tmp_path / "d.run", "f1 Q0 e1 1 7.5 x\n", ["fr", "en"])
    for wrong, why in (
        ([good], "name several runs"),
        ([good, bare], "such as de-en="),
        ([good, same], "does not name two languages"),
        ([good, high], "is not a probability"),
        ([good, tmp_path / "none"], "cannot tell the languages"),
    ):
        with pytest.raises(InputError, match=why):
            triangulate(wrong)
    with pytest.raises(InputError, match="before their file"):
        triangulate([good], known=[bare])
