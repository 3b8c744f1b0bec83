"""Surface overlap against scikit-learn's tf-idf, and the fusion network as arrays against scikit-learn's."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPRegressor

from linker.papers.news import overlap
from linker.papers.news.fusion import FusionConfig, FusionNetwork, fit_fusion
from linker.papers.news.overlap import Overlap, tokens

FIRST = ["Ships left the port of London at 10:30 with 1,200 tons", "Nothing in common", "no numbers"]
SECOND = ["The port said London ships, 1,200 of them, left", "Completely different words 7", ""]


def test_tokens_are_stems_names_and_numbers() -> None:
    words, names, numbers = tokens("The ships, Maersk said, leave London London at 10:30")
    assert words == {"the": 1, "ships": 1, "maers": 1, "said": 1, "leave": 1, "londo": 2, "at": 1}
    assert names == {"maersk": 1, "london": 2}
    assert numbers == {"10:30": 1}


def test_cosines_are_those_of_tf_idf() -> None:
    found = Overlap.fit([*FIRST, *SECOND]).cosines(FIRST, SECOND)
    for row in range(3):
        oracle = TfidfVectorizer(
            analyzer=lambda text, row=row: list(tokens(text)[row].elements()), sublinear_tf=True
        )
        oracle.fit([*FIRST, *SECOND])
        expected = oracle.transform(FIRST).multiply(oracle.transform(SECOND)).sum(axis=1)
        assert found[:, row] == pytest.approx(np.asarray(expected).ravel())
    assert found[0, 2] > 0
    assert found[2].tolist() == [0, 0, 0]


def test_the_worked_weight() -> None:
    """A word that occurs twice here and in one of two texts: (1 + ln 2)(1 + ln(3/2))."""
    weights = Overlap.fit(["storm storm", "rain"])._weights(0, tokens("storm storm")[0])
    assert weights == {"storm": pytest.approx((1 + math.log(2)) * (1 + math.log(3 / 2)))}
    assert overlap._bucket("storm") < overlap.BUCKETS


def data(count: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.random((count, 5)) * [1, 10, 0.1, 1, 2]
    features[:, 2] = 0.3  # a constant feature
    return features, (features[:, 0] + features[:, 1] / 10) / 2


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_arrays_predict_what_the_network_does(solver: str) -> None:
    features, gold = data()
    config = FusionConfig(solver="adam" if solver == "adam" else "lbfgs", epochs=30, seed=3)
    found = fit_fusion(features, gold, config)
    scale = np.where(features.std(axis=0) > 1e-12, features.std(axis=0), 1)
    network = MLPRegressor(
        hidden_layer_sizes=(32,), activation="logistic", solver=solver, learning_rate_init=1e-3, alpha=1e-4,
        max_iter=30, random_state=3,
    )  # fmt: skip
    standard = (features - features.mean(axis=0)) / scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(standard, gold)
    assert found.predict(features) == pytest.approx(network.predict(standard).clip(0, 1))


@pytest.mark.parametrize("output", ["linear", "sigmoid"])
def test_it_learns_and_members_are_averaged(output: str) -> None:
    features, gold = data()
    config = FusionConfig(output="sigmoid" if output == "sigmoid" else "linear", solver="lbfgs", members=3)
    fusion = fit_fusion(features, gold, config)
    assert np.corrcoef(fusion.predict(features), gold)[0, 1] > 0.99
    assert fusion.hidden.shape == (3, 5, 32)
    parts = [
        FusionNetwork.of_tensors(
            {
                name: array if name in ("mean", "scale") else array[[m]]
                for name, array in fusion.tensors().items()
            },
            output,
        )
        for m in range(3)
    ]
    inside = (fusion.predict(features) > 0) & (fusion.predict(features) < 1)
    mean = np.mean([part.predict(features) for part in parts], axis=0)
    assert inside.sum() > 60
    assert fusion.predict(features)[inside] == pytest.approx(mean[inside], abs=0.02)
    again = FusionNetwork.of_tensors(fusion.tensors(), output)
    assert again.predict(features).tolist() == fusion.predict(features).tolist()


def test_the_worked_forward_pass_and_the_mean_of_the_members() -> None:
    """One feature 3 with mean 1, scale 2 → 1; hidden logistic(1·ln 3) = .75; out .75·2 − 1 = .5."""
    one = np.array
    fusion = FusionNetwork(
        one([1.0]), one([2.0]), one([[[math.log(3)]]]), one([[0.0]]), one([[2.0]]), one([-1.0]), "linear"
    )
    assert fusion.predict(one([[3.0]])) == pytest.approx([0.5])
    sigmoid = dataclasses.replace(fusion, output="sigmoid")
    assert sigmoid.predict(one([[3.0]])) == pytest.approx([1 / (1 + math.exp(-0.5))])
    nothing = np.zeros((2, 1, 1))
    biases = np.array([0.2, 0.6])  # the only output of these members
    fusion = FusionNetwork(
        np.zeros(1), np.ones(1), nothing, np.zeros((2, 1)), np.zeros((2, 1)), biases, "linear"
    )
    assert fusion.predict(np.array([[1.0], [7.0]])) == pytest.approx([0.4, 0.4])
