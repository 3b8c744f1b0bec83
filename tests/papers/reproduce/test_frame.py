"""The layout of the papers' tables and their figures; AUT's matrix; the budget of Danovitch's table."""

import dataclasses
import gzip
import json
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from linker.base.errors import InputError
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import Task
from linker.encoders.tokens import load_word_vectors
from linker.papers.all_pairs.result import RANKS
from linker.papers.bucc.prepare import prepare
from linker.papers.reproduce import posts
from linker.papers.reproduce.ast import MODELS, settings
from linker.papers.reproduce.bucc import by_matrix, ridge, studies
from linker.papers.reproduce.cells import Outcome, Study, System, reproduce
from linker.papers.reproduce.frame import as_latex, as_markdown, figures_of, published, row, table
from linker.papers.reproduce.posts import GLOVE, Posts, export
from linker.training import ready
from tests.helpers import shared_data, write_json_lines

pytest.importorskip("torch")


def test_published_means_are_those_of_eight_ranks() -> None:
    """The paper prints seven precisions for its star: the eighth follows from the mean, and is the lowest."""
    ranks = [f"P@{rank}" for rank in RANKS[:-1]]
    shown = figures_of("ast", "any", ["mRP", *ranks])["AST"]
    precisions = [shown[rank] for rank in ranks]
    assert 0.4 < 8 * shown["mRP"] - sum(precisions) < precisions[-1]


@pytest.mark.parametrize("paper", ["ast", "semeval", "bucc", "cbg"])
def test_every_published_cell_says_where_it_stands(paper: str) -> None:
    found = published(paper)
    assert found["paper"]
    for cell in found["cells"]:
        assert {*cell} <= {"table", "row", "system", "studies", "figures"}
        assert cell["table"] and cell["row"] and cell["system"] and cell["figures"]


def test_a_system_has_its_published_line_and_ours() -> None:
    rows = [
        row("CNN", {"mAP": 0.4981, "pairs": 12000}, {"mAP": [0.25, 0.35], "pairs": None}, "other data"),
        row("AST", {}, {"mAP": 0.5}),
        row("HFL", {"mAP": 0.8}, {}),
    ]
    lines = as_markdown({"tables": [table("Table 2", ["mAP", "pairs"], rows, "fewer links")]}).splitlines()
    assert lines[0] == "**Table 2**"
    assert [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[4:8]] == [
        ["CNN", "published", "0.498", "12,000"],
        ["here (2 seeds)", "0.300 ± .071", "", "other data"],
        ["AST", "here", "0.500"],
        ["HFL", "published", "0.800"],
    ]
    assert lines[-1] == "Why they differ: fewer links."
    assert "% Why they differ: fewer links." in as_latex(
        {"tables": [table("", ["mAP"], rows, "fewer links")]}
    )


def test_an_interval_over_seeds_is_students() -> None:
    values = [0.2, 0.3, 0.7]
    found = row("AST", {}, {"mAP": values})["here"]["mAP"]
    low, high = t.interval(0.95, 2, np.mean(values), np.std(values, ddof=1) / np.sqrt(3))
    assert found["interval"] == pytest.approx([low, high], abs=1e-4)
    assert row("AST", {}, {"mAP": [0.5]})["label"] == "here (1 seed)"


def test_williams_compares_systems_on_one_gold(tmp_path: Path) -> None:
    gold, a, b = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 4, 6, 5, 8, 7], [2, 1, 5, 3, 4, 8, 6, 7]
    systems = [
        System("worse", lambda seed: Outcome({"Pearson": 0.8333}, b)),
        System("better", lambda seed: Outcome({"Pearson": 0.9286}, a), rival="worse"),
    ]
    study = Study("pairs", [("Title", ["Pearson"])], systems, gold=gold)
    (shown,) = reproduce("cbg", [study], tmp_path, 3, print)["tables"]
    assert shown["tests"] == [["better", "worse", [0.1714]]]
    assert "better ahead of worse: p = 0.1714" in as_markdown({"tables": [shown]})


def test_systems_are_compared_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    figures = {"AST": [0.4, 0.5, 0.3], "CNN": [0.3, 0.45, 0.1], "mean": [0.5]}

    def figure(name: str, seed: int) -> Outcome:
        if seed >= len(figures[name]):
            raise InputError(f"seed {seed} was not computed")
        return Outcome({"mAP": figures[name][seed]})

    systems = [
        System(name, partial(figure, name), chance=True, rival="" if name == "AST" else "AST")
        for name in figures
    ]
    (shown,) = reproduce("ast", [Study("posts", [("Title", ["mAP"])], systems)], tmp_path, 3, print)["tables"]
    ((first, second, difference),) = shown["differences"]
    leads = np.array(figures["CNN"]) - figures["AST"]
    low, high = t.interval(0.95, 2, leads.mean(), leads.std(ddof=1) / np.sqrt(3))
    assert (first, second, difference["mean"]) == ("CNN", "AST", pytest.approx(leads.mean(), abs=1e-4))
    assert difference["interval"] == pytest.approx([low, high], abs=1e-4)
    text = as_markdown({"tables": [shown]})
    assert "mAP minus that of AST (95 %, paired by seed): CNN -0.117 (-0.306 to +0.073)." in text


def test_the_matrix_minimises_its_penalised_error() -> None:
    rng = np.random.default_rng(0)
    source, target = (rng.normal(size=(30, k)).astype(np.float32) for k in (4, 3))
    links = np.array([(i, 29 - i) for i in range(20)])
    a = np.vstack([source[links[:, 0]], np.sqrt(0.3) * np.eye(4)])
    b = np.vstack([target[links[:, 1]], np.zeros((4, 3))])
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(ridge(source, target, links, 0.3), expected, atol=1e-4)


def test_the_matrix_links_pages_without_a_word_in_common() -> None:
    rng = np.random.default_rng(0)
    topics = [rng.choice(12, 4, replace=False) for _ in range(120)]  # subjects of each page, out of 12

    def pages(code: str) -> Pages:
        texts = [" ".join(f"{code}{'abcdefghijkl'[i]}{word}" for i in t for word in "xyz") for t in topics]
        return Pages(tuple(f"{code}{i}" for i in range(120)), tuple(texts), language("und"))

    links = np.array([(i, i) for i in range(80)])
    found = by_matrix(Task(pages("q"), pages("w"), train=links)).cut(5).targets[80:]
    assert (found == np.arange(80, 120)[:, None]).any(axis=1).mean() > 0.9


def test_prepared_pages_are_counted_and_cut_at_the_first_full_stop(tmp_path: Path) -> None:
    for code, other in (("fr", "en"), ("en", "fr")):
        texts = [f"Version 3.{i} is it. The text {'x' * 40}" for i in range(8)]
        rows = [
            {"_id": f"{code}{i}", "text": t, "langlinks": {other: f"{other}{i}"}} for i, t in enumerate(texts)
        ]
        write_json_lines(tmp_path / f"{code}.jsonl", rows)
    data = tmp_path / "data"
    prepare(tmp_path / "fr.jsonl", tmp_path / "en.jsonl", data, ("fr", "en"), first_stop=True)
    first = json.loads((data / "en.test.jsonl").read_text().splitlines()[0])["text"]
    assert first.endswith("x" * 40) and " is it. The text" in first
    counts, french = studies(data, tmp_path, quick=False)
    assert french.name == "fr"
    assert counts.systems[0].run(0).measures == {
        "linked both ways": 8, "with text": 8, "kept": 8, "train": 4, "test": 4,
    }  # fmt: skip
    assert not counts.systems[0].why


SPLITS = {split: Path(split) for split in ("train", "dev", "test")}
POSTS = Posts("posts", Path("queries"), Path("corpus"), SPLITS, "random", official=False)


def test_all_models_have_the_budget_of_ast_paper(tmp_path: Path) -> None:
    found = {model: settings(POSTS, model, 3, 128, tmp_path, []) for model in MODELS}
    own = tomllib.loads(ready.text_of("ast-paper"))
    assert {key: getattr(found["cnn"].training, key) for key in own["training"]} == own["training"]
    for model, config in found.items():
        if model in ("ast-rescaled", "ast-frozen"):
            continue
        same = dataclasses.replace(config, encoder=found["cnn"].encoder, output=found["cnn"].output)
        assert same == found["cnn"]
        kind = "star" if model.startswith("ast-") else model.removesuffix("-author")
        assert config.encoder.kind == kind
    changed = settings(POSTS, "gru", 3, 128, tmp_path, ["training.epochs=2"])
    assert changed.training == dataclasses.replace(found["gru"].training, epochs=2)


def test_the_author_s_models_are_as_wide_as_his_and_his_star_is_his(tmp_path: Path) -> None:
    found = {
        model: dataclasses.asdict(settings(POSTS, model, 3, 300, tmp_path, []).encoder.model)
        for model in MODELS
    }
    assert found["gru-author"]["hidden"] == 300
    assert found["bigru-author"]["hidden"] == 150  # per direction
    assert (found["cnn-author"]["widths"], found["cnn-author"]["filters"]) == ((1, 2, 3, 4), 300)
    star = found["ast-paper"]
    assert (star["heads"], star["head_dim"], star["window"], star["layers"]) == (10, 30, 2, 1)
    assert (star["alpha_form"], star["first_token_key"]) == ("clamped", True)
    assert (found["ast-two"]["layers"], found["ast-cosine"]["score"]) == (2, "cosine")
    first = settings(POSTS, "ast-paper", 3, 300, tmp_path, [])
    frozen, rescaled = (settings(POSTS, f"ast-{x}", 3, 300, tmp_path, []) for x in ("frozen", "rescaled"))
    assert frozen.training == dataclasses.replace(first.training, embedding_lr=0)
    assert rescaled.data == dataclasses.replace(first.data, rescale=True)


def test_words_of_several_pieces_are_exported_with_their_mean(tmp_path: Path) -> None:
    source = shared_data("word-vectors-en")
    texts = ["tokenization of news", "tokenization of news, 東"]
    export(source, texts, tmp_path / "vectors.txt")
    exported = load_word_vectors(tmp_path / "vectors.txt")
    pieces = load_word_vectors(source)
    assert sorted(exported.tokenizer.tokens(" ".join(texts), 100)[:3]) == ["news", "of", "tokenization"]
    (row,) = exported.tokenizer.encode_batch(["tokenization"], 9)[0]
    (ids,) = pieces.tokenizer.encode_batch(["tokenization"], 9)
    assert len(ids) > 1
    own, mean = exported.matrix[row], pieces.matrix[ids].mean(0)
    np.testing.assert_allclose(own / np.linalg.norm(own), mean / np.linalg.norm(mean), rtol=1e-3, atol=1e-4)
    assert np.linalg.norm(exported.matrix[2:], axis=1).mean() == pytest.approx(GLOVE, rel=1e-3)


def test_links_in_one_file_are_split_and_a_large_set_is_sampled_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "KEPT", {"train": 8, "dev": 3, "test": 2})
    data, pages = tmp_path / "descriptions", tmp_path / posts.ELSEWHERE["descriptions"]
    (data / "qrels").mkdir(parents=True)
    pages.parent.mkdir(parents=True)
    (data / "queries.jsonl").write_text(_lines("q", 20), encoding="utf-8")
    pages.write_bytes(gzip.compress(_lines("d", 40).encode()))
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(20)), encoding="utf-8"
    )
    (found,) = posts.sets(tmp_path, tmp_path / "work", quick=False)
    links = [path.read_text(encoding="utf-8").splitlines()[1:] for path in found.links.values()]
    assert dict(zip(found.links, map(len, links), strict=True)) == {"train": 8, "dev": 2, "test": 2}
    linked = {line.split("\t")[1] for lines in links for line in lines}
    kept = [json.loads(line)["_id"] for line in found.documents.read_text(encoding="utf-8").splitlines()]
    assert len(kept) == 12 and {*kept} == linked
    config = settings(found, "cnn", 0, 128, tmp_path, found.settings)
    assert (config.training.max_length, config.encoder.max_length) == (128, 128)
    for split, path in found.links.items():  # a set that is small enough stays as it is
        (data / "qrels" / f"{split}.tsv").write_bytes(path.read_bytes())
    (whole,) = posts.sets(tmp_path, tmp_path / "work", quick=False)
    assert (whole.documents, whole.settings) == (pages, ())


def _lines(prefix: str, count: int) -> str:
    return "".join(json.dumps({"_id": f"{prefix}{n}", "text": "a page"}) + "\n" for n in range(count))
