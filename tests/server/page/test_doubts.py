"""A second look: planted wrong verdicts are listed, kept or changed, and do not reappear."""

from pathlib import Path

import pytest

from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.review.interface import Candidate, Seed
from linker.review.learning.doubts import Doubt
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.review.session import Review
from linker.review.session.noting import facts_of
from tests.helpers import write_json_lines
from tests.server.page.support import client, form, make_review

DOUBTS = "/p/floods/doubts"
WRONG = {"f7", "v3", "v21"}


def judged(folder: Path, wrong: set[str] = WRONG) -> None:
    """Make a review of 60 documents, all judged, some of them wrongly."""
    project = Workspace(folder).create("Floods")
    source = folder / ".documents.jsonl"
    lines = []
    for i in range(30):
        lines.append({"id": f"f{i}", "text": f"Heavy rain flooded the streets, a river rose: house {i * 37}"})
        lines.append({"id": f"v{i}", "text": f"Voters elected a new parliament after debates: seat {i * 41}"})
    write_json_lines(source, lines)
    build([source], project.index, BuildOptions())
    with Ledger(project.ledger) as ledger:
        ledger.put_seeds([Seed("s1", "The flooded streets after the rain", "Floods")])
        review = Review(Engine(project.index), ledger)
        for line in lines:
            is_flood = line["id"].startswith("f") != (line["id"] in wrong)
            review.judge(
                Candidate("s1", line["id"], 0.0), "relevant" if is_flood else "not", "tess", "a note"
            )


def test_planted_wrong_verdicts_are_facts_and_are_listed_and_settled(tmp_path: Path) -> None:
    judged(tmp_path)
    with Ledger(tmp_path / "floods" / "review.sqlite") as ledger:
        doubts = facts_of(Review(Engine(tmp_path / "floods" / "index"), ledger))["doubts"]
    assert doubts
    assert {doubt["id"] for doubt in doubts} <= WRONG
    assert all(0 < doubt["probability"] < 1 for doubt in doubts)
    ledger = Ledger(tmp_path / "floods" / "review.sqlite")
    changed = list[str]()
    with client(tmp_path) as browser:
        assert "verdicts deserve a second look" in browser.get("/p/floods/stop").text
        page = browser.get(DOUBTS).text
        while 'action="/p/floods/doubts"' in page:
            values = form(page, "/doubts")
            assert len(changed) < 3
            changed.append(values["id"])
            right = "relevant" if values["id"].startswith("f") else "not"
            page = browser.post(DOUBTS, data=values | {"verdict": right}).text
        assert "a second look" not in browser.get("/p/floods/stop").text
    assert set(changed) == WRONG  # a look that overturns a verdict makes the others more improbable
    after = {j.id: j for j in ledger.judgements()}
    assert all((j.verdict == "relevant") == id_.startswith("f") for id_, j in after.items())
    assert {i for i, j in after.items() if "second look, changed" in j.tags} == WRONG
    assert all(after[id_].note == "a note" for id_ in WRONG)


def test_a_verdict_that_is_kept_is_not_listed_again(tmp_path: Path) -> None:
    judged(tmp_path)
    with client(tmp_path) as browser:
        values = form(browser.get(DOUBTS).text, "/doubts")
        page = browser.post(DOUBTS, data=values | {"verdict": values["was"]}).text
    assert f'value="{values["id"]}"' not in page
    kept = next(j for j in Ledger(tmp_path / "floods" / "review.sqlite").judgements() if j.id == values["id"])
    assert (kept.verdict, kept.tags) == (values["was"], ("second look",))


def test_right_verdicts_are_left_alone(tmp_path: Path) -> None:
    judged(tmp_path, set())
    with client(tmp_path) as browser:
        assert "No verdict stands out" in browser.get(DOUBTS).text


def test_too_few_verdicts_are_said_to_be_too_few(tmp_path: Path) -> None:
    make_review(tmp_path)
    with client(tmp_path) as browser:
        page = browser.get(DOUBTS).text
    assert "at least 5 verdicts of each kind" in page
    assert "No verdict stands out" not in page


def test_verdicts_count_only_if_they_are_scored(tmp_path: Path) -> None:
    judged(tmp_path, set())
    with Ledger(tmp_path / "floods" / "review.sqlite") as ledger:
        ledger.set("unit", "pairs")  # without a calibration, pairs have no probability
    with client(tmp_path) as browser:
        assert "at least 5 verdicts of each kind" in browser.get(DOUBTS).text


def test_second_looks_are_found_once_for_the_same_judgements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(tmp_path)
    asked = list[str]()
    doubts = Review.doubts

    def counted(review: Review) -> list[Doubt] | None:
        asked.append("")
        return doubts(review)

    monkeypatch.setattr(Review, "doubts", counted)
    with client(tmp_path) as browser:
        for path in ("/p/floods/stop", DOUBTS, "/p/floods/stop"):
            browser.get(path)
        assert len(asked) == 1
        browser.post(DOUBTS, data=form(browser.get(DOUBTS).text, "/doubts") | {"verdict": "not"})
        browser.get("/p/floods/stop")
    assert len(asked) == 2
