"""`linker review` on a terminal: from an index and a ledger to files, and back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger
from tests.helpers import linker, write_corpus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 5), "--out", tmp_path / "index")
    with Ledger(tmp_path / "review.sqlite") as ledger:
        ledger.put_seeds([Seed("s", "a flood", "Flood")])
        ledger.set("unit", "topic")
        ledger.add_all(
            [
                Judgement("s", "d0", "relevant", "ana", tags=("t",)),
                Judgement("s", "d1", "not", "ana"),
                Judgement("s", "d0", "not", "ben"),
                Judgement("other", "d1", "not", "ben"),
                Judgement("s", "gone", "maybe", "ben"),
            ]
        )
    return tmp_path


def test_status(folder: Path) -> None:
    values = json.loads(linker("review", "status", folder / "review.sqlite", "--json").stdout)
    assert (values["seeds"], values["judgements"], values["documents"]) == (1, 5, 3)
    assert values["reviewers"] == {"ana": {"relevant": 1, "not": 1}, "ben": {"not": 2, "maybe": 1}}
    assert (values["settings"], values["progress"]) == ({"unit": "topic"}, None)
    printed = linker("review", "status", folder / "review.sqlite").stdout
    assert "reviewer     ana: 1 relevant, 1 not\n" in printed
    with Ledger(folder / "review.sqlite") as ledger:
        ledger.add(Judgement("s", "d2", "not", "ana", phase="control"))
    done = linker("review", "status", folder / "review.sqlite", "--index", folder / "index", "--json")
    progress = json.loads(done.stdout)["progress"]
    assert progress.pop("price").startswith("With so few documents")
    assert progress == {
        "read": 3, "population": 5, "found": 0, "random": 1, "estimated": False, "certified": None, "left": 2,
        "by_order": None,
        "most": 2, "ahead": None, "total": None, "total_low": None, "total_high": None,
        "languages": [], "doubts": [],
    }  # fmt: skip
    assert "no ledger" in linker("review", "status", folder / "none", check=1).stderr
    assert not (folder / "none").exists()


def test_status_prints_the_method_note(folder: Path) -> None:
    done = linker("review", "status", folder / "review.sqlite", "--note")
    prior = "2 of them had been judged before and were imported."  # not proposed by any order
    assert done.stdout == f"In 5 documents, we read 2 and found 0 relevant. {prior}\n"
    assert "Give no share at all: with fewer than 15 found" in done.stderr
    pytest.importorskip("babel")
    options = ("--note", "--language", "de", "--index", folder / "index", "--json")
    note = json.loads(linker("review", "status", folder / "review.sqlite", *options).stdout)
    assert note["note"] == (
        "Von 5 Dokumenten haben wir 2 gelesen und 0 als relevant eingestuft. "
        "2 davon waren schon vorher beurteilt und wurden übernommen."
    )
    assert note["language"] == "de"
    missing = linker(
        "review", "status", folder / "review.sqlite", "--note", "--index", folder / "none", check=1
    )
    assert "--index" in missing.stderr


def test_export_with_the_index_and_without(folder: Path) -> None:
    out = folder / "x.jsonl"
    done = linker("review", "export", folder / "review.sqlite", out, "--index", folder / "index")
    assert done.stdout == f"{out}: 5 judgements\n"
    assert "the texts of 1 document are not in the index" in done.stderr
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert records[0]["title"]
    assert records[0]["metadata"].keys() == {"group", "lang"}
    options = ("--verdict", "maybe", "--reviewer", "ben", "--no-bom", "--json")
    done = linker("review", "export", folder / "review.sqlite", folder / "x.csv", *options)
    assert json.loads(done.stdout)["rows"] == 1
    assert "name the index with --index" in done.stderr
    assert (folder / "x.csv").read_bytes().startswith(b"seed,id,")
    assert (
        "must end in .csv"
        in linker("review", "export", folder / "review.sqlite", out.with_suffix(""), check=1).stderr
    )


def test_what_was_exported_can_be_imported(folder: Path) -> None:
    for suffix in ("csv", "ris"):
        linker("review", "export", folder / "review.sqlite", folder / f"x.{suffix}")
        new = folder / f"new-{suffix}.sqlite"
        done = linker("review", "import", new, folder / f"x.{suffix}")
        assert done.stdout == f"{new}: 5 judgements added, 0 were already there\n"
        repeated = json.loads(linker("review", "import", new, folder / f"x.{suffix}", "--json").stdout)
        assert (repeated["added"], repeated["present"]) == (0, 5)
        originals = Ledger(folder / "review.sqlite").judgements()
        assert Ledger(new).judgements() == tuple(replace(j, phase="prior") for j in originals)


def test_import_names_its_reviewer_and_keeps_bad_records_apart(folder: Path) -> None:
    (folder / "x.csv").write_text("id,verdict\nd3,yes\nd4,so so\n", encoding="utf-8")
    done = linker("review", "import", folder / "review.sqlite", folder / "x.csv", "--reviewer", "cem")
    assert "1 judgements added" in done.stdout
    assert f"1 records are not judgements; they are in {folder / 'x.csv.quarantine.jsonl'}" in done.stderr
    assert Ledger(folder / "review.sqlite").judgements("cem")[0].seed == "s"
    assert "must end in" in linker("review", "import", folder / "new", folder / "c.doc", check=1).stderr
    for name, content in (("empty.csv", ""), ("header.csv", "id,verdict\n"), ("empty.jsonl", "")):
        (folder / name).write_text(content, encoding="utf-8")
        refused = linker("review", "import", folder / "new", folder / name, check=1)
        assert f"{folder / name} is empty" in refused.stderr
    assert (
        "does not say which seed"
        in linker("review", "import", folder / "new", folder / "x.csv", check=1).stderr
    )
    assert not (folder / "new").exists()


def test_agreement(folder: Path) -> None:
    done = linker("review", "agreement", folder / "review.sqlite")
    assert done.stdout == "ana and ben: judged by both 2, agreed 1, kappa 0.000\ns  d0  relevant/not  open\n"
    Ledger(folder / "review.sqlite").add(Judgement("s", "d0", "relevant", "consensus"))
    agreement = json.loads(
        linker("review", "agreement", folder / "review.sqlite", "ben", "ana", "--json").stdout
    )
    assert (agreement["both"], agreement["kappa"]) == (2, 0.0)
    assert agreement["conflicts"] == [
        {"seed": "s", "id": "d0", "verdicts": ["not", "relevant"], "resolution": "relevant"}
    ]
    assert (
        "name two from this ledger"
        in linker("review", "agreement", folder / "review.sqlite", "ana", "x", check=1).stderr
    )
