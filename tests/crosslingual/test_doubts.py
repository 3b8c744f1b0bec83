"""Uncertain links go to reviewers, in a spreadsheet or on the review page, and return as training links."""

import csv
import json
from pathlib import Path

import orjson
import pytest

import linker as package
from linker import link
from linker.base.errors import InputError
from linker.evaluation.reading.trec import read_qrels
from linker.review.links import ProposedLinks, folder_of, make_of_pairs
from linker.review.project import Workspace
from tests.crosslingual.synthetic import Twin, twin, write_pages
from tests.helpers import linker, run_page

pytestmark = pytest.mark.usefixtures("divided_once")
LOW, HIGH = 0.02, 0.9


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return twin(pages=70, length=14)


@pytest.fixture(scope="module")
def folder(corpus: Twin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of pages, a sixth of the dictionary, and the links with probabilities between the bounds."""
    folder = tmp_path_factory.mktemp("doubts")
    for name, pages in (("ours", corpus.source), ("theirs", corpus.target)):
        write_pages(folder / f"{name}.jsonl", pages)
    (folder / "words.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in corpus.dictionary[::6]))
    doubtful(folder, "doubts.jsonl")
    return folder


def doubtful(folder: Path, name: str, **options: object) -> None:
    link(
        folder / "ours.jsonl", folder / "theirs.jsonl", "auto", dictionary=[folder / "words.tsv"],
        uncertain=folder / name, between=(LOW, HIGH), min_probability=0.5, **options,  # type: ignore[arg-type]  # any
    )  # fmt: skip


def records(folder: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in (folder / "doubts.jsonl").read_bytes().splitlines()]


def test_the_least_certain_come_first_with_both_texts(folder: Path, corpus: Twin) -> None:
    found = records(folder)
    probabilities = [float(str(r["probability"])) for r in found]
    assert len(found) > 5
    assert all(LOW <= p <= HIGH for p in probabilities)
    assert min(probabilities) < 0.5 < max(probabilities)  # --min-probability does not hide any
    distances = [abs(p - 0.5) for p in probabilities]
    assert distances == sorted(distances)
    for record in found:
        assert record["seed_text"] == corpus.source.texts[corpus.source.position[str(record["seed"])]]
        assert record["text"] == corpus.target.texts[corpus.target.position[str(record["id"])]]
        assert record["verdict"] == ""


def test_a_spreadsheet_comes_back_as_training_links(folder: Path, corpus: Twin, tmp_path: Path) -> None:
    gold = corpus.gold()
    doubtful(folder, "doubts.csv")
    with (folder / "doubts.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    judged = [row | {"verdict": "yes" if gold[row["seed"]] == row["id"] else "no"} for row in rows[:-1]]
    with (tmp_path / "judged.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([*judged, rows[-1]])  # the last one has not been judged
    ledger, qrels = tmp_path / "ledger.sqlite", tmp_path / "judged.qrels"
    done = linker("review", "import", ledger, tmp_path / "judged.csv", "--reviewer", "ana")
    assert f"{len(judged)} judgements added" in done.stdout
    linker("review", "export", ledger, qrels)
    right = {s: t for s, targets in read_qrels(qrels).items() for t, grade in targets.items() if grade > 0}
    assert right == {row["seed"]: row["id"] for row in judged if row["verdict"] == "yes"}
    again = link(
        folder / "ours.jsonl", folder / "theirs.jsonl", "auto", dictionary=[folder / "words.tsv"], train=qrels
    )
    assert not again.run.keys() & right.keys()


def test_the_review_page_opens_them_in_their_order(folder: Path, tmp_path: Path) -> None:
    project = Workspace(tmp_path / "reviews").create("Pages")
    make_of_pairs(project, folder / "doubts.jsonl")
    links = ProposedLinks(folder_of(project))
    assert [(p.source, p.target) for p in links.pairs] == [(r["seed"], r["id"]) for r in records(folder)]
    found = links.next("ana")
    assert found
    links.judge(found[1], "relevant", "ana")
    linker("review", "export", links.ledger.path, tmp_path / "judged.qrels")
    assert read_qrels(tmp_path / "judged.qrels")[found[1].source] == {found[1].target: 1}


def test_mistakes_are_named_with_their_remedy(folder: Path, tmp_path: Path) -> None:
    pages = (folder / "ours.jsonl", folder / "theirs.jsonl", "auto")
    with pytest.raises(InputError, match=r"\.csv, \.xlsx, \.jsonl"):
        link(*pages, uncertain=tmp_path / "x.run")  # type: ignore[arg-type]  # a method
    with pytest.raises(InputError, match="two ascending probabilities"):
        link(*pages, uncertain=tmp_path / "x.csv", between=(0.9, 0.1))  # type: ignore[arg-type]  # a method
    with pytest.raises(InputError, match="leave it out"):
        link(*pages[:2], "hapax", uncertain=tmp_path / "x.csv")
    project = Workspace(tmp_path / "reviews").create("Pages")
    for content, why in (
        (b'{"seed": "a"}\n', "1: not a pair with its texts"),
        (b"", "contains no pair"),
        (b"x\n", "not a pair"),
    ):
        (tmp_path / "bad.jsonl").write_bytes(content)
        with pytest.raises(InputError, match=why):
            make_of_pairs(project, tmp_path / "bad.jsonl")


OLD = 40


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    corpus = twin(pages=60)
    gold = list(corpus.gold().items())
    write_pages(tmp_path / "old.fr.jsonl", corpus.source, range(OLD))
    write_pages(tmp_path / "new.fr.jsonl", corpus.source, range(OLD, 60))
    write_pages(tmp_path / "fr.jsonl", corpus.source, range(OLD))
    write_pages(tmp_path / "en.jsonl", corpus.target)
    (tmp_path / "fr-en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in corpus.dictionary[::3]))
    (tmp_path / "old.qrels").write_text("".join(f"{s} 0 {t} 1\n" for s, t in gold[:25]))
    (tmp_path / "links.qrels").write_text((tmp_path / "old.qrels").read_text())
    package.build([tmp_path / "en.jsonl"], tmp_path / "en.index", package.BuildOptions())
    for code, first in (("de", 25), ("fr", 30)):
        run, known = tmp_path / f"{code}-en.run", tmp_path / f"{code}.qrels"
        run.write_text("".join(f"{code}{s} Q0 {t} 1 .8 x\n" for s, t in gold[first:]))
        known.write_text("".join(f"{code}{s} 0 {t} 1\n" for s, t in gold[:first]))
        Path(f"{run}.json").write_text(json.dumps({"languages": [code, "en"]}))
    printed = run_page("linking-models.md", tmp_path, blocks=5)
    assert set(json.loads(printed.splitlines()[-1])["pages"]) == {"de", "en", "fr"}
    new = {line.split()[0] for line in (tmp_path / "new.run").read_text().splitlines()}
    assert new == {s for s, _ in gold[OLD:]}
    assert (tmp_path / "doubts.csv").read_text(encoding="utf-8-sig").startswith("seed,id,verdict")
