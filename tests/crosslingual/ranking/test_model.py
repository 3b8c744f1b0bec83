"""A saved model links later pages; damaged, foreign or contradictory models are refused."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linker.base.errors import InputError
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages, count_terms
from linker.crosslingual.ranking.knowledge import HalfSpace, Knowledge, fingerprints, join, onto
from linker.crosslingual.ranking.model import ARRAYS, DICTIONARY, WORDS, LinkModel, load, save
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.task import LinkingResult, Task
from linker.encoders.model_folder import CONFIG
from tests.crosslingual.synthetic import Twin, twin, write_pages
from tests.helpers import linker

pytestmark = pytest.mark.usefixtures("divided_once")
KNOWN = 90


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return twin(pages=150)


def only(pages: Pages, rows: range | list[int]) -> Pages:
    return Pages(tuple(pages.ids[i] for i in rows), tuple(pages.texts[i] for i in rows), pages.language)


def kept(result: LinkingResult, folder: Path) -> LinkModel:
    assert result.model
    save(result.model(), folder)
    return load(folder)


@pytest.fixture(scope="module")
def full(corpus: Twin) -> LinkingResult:
    task = Task(corpus.source, corpus.target, train=corpus.links[:KNOWN], options=Options(self_train=False))
    return link(task, "auto")


@pytest.fixture(scope="module")
def folder(full: LinkingResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "model"
    kept(full, folder)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LinkModel:
    return load(folder)


def right(found: LinkingResult, corpus: Twin, task: Task) -> float:
    """Share of the task's pages whose first target is the gold target, by ids."""
    gold, first = corpus.gold(), found.candidates.targets[:, 0].tolist()
    hits = [task.target.ids[t] == gold[s] for s, t in zip(task.source.ids, first, strict=True) if t >= 0]
    return float(np.mean(hits)) if hits else 0.0


def test_new_pages_are_linked_without_training(corpus: Twin, full: LinkingResult, model: LinkModel) -> None:
    task = Task(only(corpus.source, range(KNOWN, 150)), corpus.target, model=model)
    found = link(task, "auto")
    assert right(found, corpus, task) >= right(full, corpus, Task(corpus.source, corpus.target)) - 0.03
    assert (found.candidates.targets[:, 0] >= 0).all()
    taken = {corpus.target.ids[t] for t in corpus.links[:KNOWN, 1].tolist()}
    assert not taken & {task.target.ids[t] for t in found.candidates.targets.ravel().tolist() if t >= 0}


def test_few_pages_are_linked_too(corpus: Twin, model: LinkModel, caplog: pytest.LogCaptureFixture) -> None:
    """Counted in one page alone, every word would have idf ln(2/2) = 0, so the model's frequencies are used."""
    hits = []
    for row in range(KNOWN, KNOWN + 8):
        task = Task(only(corpus.source, [row]), corpus.target, model=model)
        hits.append(right(link(task, "auto"), corpus, task))
    assert np.mean(hits) > 0.7
    assert "1 pages are few" in caplog.text


def test_pages_of_unknown_languages_are_asked_for_theirs(
    corpus: Twin, model: LinkModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    other = replace(model, languages=(language("tr"), language("en")))
    link(Task(only(corpus.source, range(KNOWN, KNOWN + 8)), corpus.target, model=other), "auto")
    assert "name their `languages`" in caplog.text


def test_known_links_are_not_learned_again(corpus: Twin, full: LinkingResult, model: LinkModel) -> None:
    task = Task(corpus.source, corpus.target, train=corpus.links[:KNOWN], model=model)
    found = link(task, "auto")
    assert (found.candidates.targets[:KNOWN] == -1).all()
    same = found.candidates.targets[KNOWN:, 0] == full.candidates.targets[KNOWN:, 0]
    assert same.mean() > 0.9
    assert found.model and len(found.model().knowledge.links) == KNOWN


def test_more_links_refine_a_model(corpus: Twin, tmp_path: Path) -> None:
    first = kept(
        link(Task(corpus.source, corpus.target, train=corpus.links[:25]), "auto"), tmp_path / "first"
    )
    task = Task(corpus.source, corpus.target, train=corpus.links[25:KNOWN], model=first)
    found = link(task, "auto")
    assert right(found, corpus, task) > 0.9
    second = kept(found, tmp_path / "second")
    assert len(second.knowledge.links) == KNOWN
    assert len(second.knowledge.spaces) == 2
    assert set(second.knowledge.words) > set(first.knowledge.words)


def test_the_cascade_is_kept_with_its_topics(corpus: Twin, tmp_path: Path) -> None:
    full = link(Task(corpus.source, corpus.target, train=corpus.links[:KNOWN]), "cascade")
    model = kept(full, tmp_path / "model")
    assert model.knowledge.topics
    task = Task(only(corpus.source, range(KNOWN, 150)), corpus.target, model=model)
    found = link(task, "cascade")
    assert right(found, corpus, task) >= right(full, corpus, Task(corpus.source, corpus.target)) - 0.05
    with pytest.raises(InputError, match="`method` cascade"):
        link(task, "auto")


def test_what_is_read_is_what_was_saved(full: LinkingResult, model: LinkModel) -> None:
    assert full.model
    before = full.model()
    assert model.knowledge.words == pytest.approx(before.knowledge.words, abs=1e-3)
    assert model.start.ranker.names == before.start.ranker.names
    np.testing.assert_allclose(model.start.ranker.weights, before.start.ranker.weights, rtol=1e-4)
    assert (model.knowledge.links == before.knowledge.links).all()
    assert model.knowledge.often == before.knowledge.often
    for ours, theirs in zip(before.knowledge.spaces[0], model.knowledge.spaces[0], strict=True):
        assert ours.terms == theirs.terms
        np.testing.assert_allclose(ours.components, theirs.components, rtol=2e-3, atol=1e-6)


def edit(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        settings = json.loads((folder / CONFIG).read_text())
        change(settings)
        (folder / CONFIG).write_text(json.dumps(settings))

    return apply


DAMAGE = {
    "words": lambda f: (f / WORDS).write_bytes(b"[]"),
    "arrays": lambda f: (f / ARRAYS).write_bytes((f / ARRAYS).read_bytes()[:-9]),
    "dictionary": lambda f: (f / DICTIONARY).unlink(),
    "format": edit(lambda s: s.update(format="linker-links-9")),
    "json": lambda f: (f / CONFIG).write_text("{"),
    "ranker": edit(lambda s: s.update(ranker={})),
    "languages": edit(lambda s: s.update(languages=[{"code": "fr"}])),
    "about": edit(lambda s: s.pop("about")),
}


class Harmful:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_with_its_remedy(what: str, folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    DAMAGE[what](copy)
    with pytest.raises(InputError) as raised:
        load(copy)
    assert str(copy) in str(raised.value)
    assert "copy" in str(raised.value) or "writes linker-links-1" in str(raised.value) or what == "json"


def test_a_pickle_is_refused(folder: Path, tmp_path: Path) -> None:
    import shutil

    import xxhash

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    np.savez(copy / ARRAYS, spaces=np.array([Harmful(tmp_path / "written")], object))
    digest = xxhash.xxh3_128_hexdigest((copy / ARRAYS).read_bytes())
    edit(lambda s: s["files"].update({ARRAYS: digest}))(copy)  # type: ignore[attr-defined]  # a dict
    with pytest.raises(InputError, match="not a linking model of this version"):
        load(copy)
    assert not (tmp_path / "written").exists()


def test_a_folder_of_something_else_is_not_replaced(full: LinkingResult, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert full.model
    with pytest.raises(InputError, match="holds no linking model"):
        save(full.model(), tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_half_space_folds_pages_by_the_strings_of_terms() -> None:
    """Columns of another vocabulary: page "b c" against rows for a, b and x; c is unknown."""
    pages = count_terms(["b c b", "x", "c"], str.split)
    assert onto(pages, ("x", "a", "b")).toarray().tolist() == [[0, 0, 2], [1, 0, 0], [0, 0, 0]]
    half = HalfSpace(("x", "a", "b"), np.ones(3, np.float32), np.array([[1, 0], [5, 5], [0, 3]], np.float32))
    assert half.vectors(pages).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_joined_spaces_average_their_products() -> None:
    rng = np.random.default_rng(0)
    spaces = [(rng.random((3, k)).astype(np.float32), rng.random((4, k)).astype(np.float32)) for k in (2, 5)]
    left, right = join(spaces)
    np.testing.assert_allclose(left @ right.T, sum(a @ b.T for a, b in spaces) / 2, rtol=1e-5)


def test_the_background_counts_for_idf() -> None:
    pages = count_terms(["a b"], str.split)
    known = Knowledge(often={"a": 9, "z": 3}, pages=9)
    np.testing.assert_allclose(idf(known.with_idf(pages)), [np.log(11 / 11), np.log(11 / 2)], rtol=1e-6)


def test_targets_of_pages_that_are_elsewhere_are_taken(corpus: Twin) -> None:
    links = corpus.links[:3]
    known = Knowledge(links=fingerprints(links, corpus.source, corpus.target))
    here = only(corpus.source, [0, 5])
    assert set(known.taken(here, corpus.target).tolist()) == set(links[1:, 1].tolist())
    assert known.has(corpus.links[2:4], corpus.source, corpus.target).tolist() == [True, False]


def test_the_command_saves_and_uses_a_model(corpus: Twin, tmp_path: Path) -> None:
    write_pages(tmp_path / "old.jsonl", corpus.source, range(60))
    write_pages(tmp_path / "new.jsonl", corpus.source, range(60, 110))
    write_pages(tmp_path / "theirs.jsonl", corpus.target)
    gold = corpus.gold()
    (tmp_path / "train").write_text("".join(f"s{i} 0 {gold[f's{i}']} 1\n" for i in range(50)))
    model, theirs = tmp_path / "model", tmp_path / "theirs.jsonl"
    base = ("--method", "auto", "--out")
    linker(
        "link", tmp_path / "old.jsonl", theirs, *base, tmp_path / "a.run", "--train", tmp_path / "train",
        "--save-model", model,
    )  # fmt: skip
    done = linker("link", tmp_path / "new.jsonl", theirs, *base, tmp_path / "b.run", "--model", model)
    assert "a model of und-und, method auto, 50 links" in done.stderr
    lines = [line.split() for line in (tmp_path / "b.run").read_text().splitlines()]
    assert np.mean([gold[line[0]] == line[2] for line in lines if line[3] == "1"]) > 0.85
    assert json.loads((tmp_path / "b.run.json").read_text())["model"]["links"] == 50
    taken = linker(
        "link", tmp_path / "new.jsonl", theirs, *base, tmp_path / "c.run", "--train", tmp_path / "train",
        "--save-model", tmp_path / "train", check=1,
    )  # fmt: skip
    assert "holds no linking model" in taken.stderr
    hapax = ("link", tmp_path / "new.jsonl", theirs, "--method", "hapax", "--out", tmp_path / "d.run")
    assert "leave it out" in linker(*hapax, "--save-model", model, check=1).stderr
    assert "leave it out" in linker(*hapax, "--model", model, check=1).stderr
    assert (
        "cannot read"
        in linker("link", tmp_path / "new.jsonl", theirs, *base, "x", "--model", "none", check=1).stderr
    )


def test_links_of_every_page_make_a_model_that_can_be_loaded(corpus: Twin, tmp_path: Path) -> None:
    """Nothing is left to link, so there are no lists to whose scale the ranker could adapt."""
    links = link(Task(corpus.source, corpus.target, train=corpus.links), "auto")
    assert (links.candidates.targets < 0).all() and links.model
    save(links.model(), tmp_path / "model")
    assert np.isfinite(load(tmp_path / "model").start.ranker.weights).all()
