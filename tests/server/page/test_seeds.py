"""The seeds page, the progress and the export, through their forms."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from linker.review.interface import Judgement
from linker.review.language import language
from linker.review.ledger import Entry
from linker.server.page.progress import curve, paces, per_hour
from tests.server.page.support import FLOODS, form, ledger

SEEDS = "/p/floods/seeds"
SETTINGS = "/p/floods/settings"


def test_a_document_becomes_a_seed_and_leaves_the_queue(folder: Path, browser: TestClient) -> None:
    page = browser.get(SEEDS, params={"q": "parliament region 7"}).text
    values = form(page, "/seeds/choose")
    assert "2 seeds" in browser.post(f"{SEEDS}/choose", data=values).text
    seed = ledger(folder).seeds[-1]
    assert seed.document == seed.id == values["id"]
    assert "is a seed" in browser.get(SEEDS, params={"q": "parliament region 7"}).text
    assert browser.post(f"{SEEDS}/choose", data=values | {"id": "none"}).status_code == 400


def test_a_text_is_pasted_and_removed(folder: Path, browser: TestClient) -> None:
    values = form(browser.get(SEEDS).text, "/seeds/paste")
    browser.post(f"{SEEDS}/paste", data=values | {"title": " A  title ", "text": "line\r\nline"})
    browser.post(f"{SEEDS}/paste", data=values | {"title": "only a title"})
    assert [(s.id, s.title, s.text) for s in ledger(folder).seeds[1:]] == [
        ("seed-2", "A title", "line\nline"), ("seed-3", "", "only a title"),
    ]  # fmt: skip
    browser.post(f"{SEEDS}/remove", data=form(browser.get(SEEDS).text, "/remove", 1))
    assert [s.id for s in ledger(folder).seeds] == ["s1", "seed-3"]
    answer = browser.post(f"{SEEDS}/paste", data=values)
    assert answer.status_code == 400
    assert 'aria-describedby="paste-error"' in answer.text


def test_seeds_are_uploaded(folder: Path, browser: TestClient) -> None:
    values = form(browser.get(SEEDS).text, "/seeds/upload")
    values.pop("file", None)
    csv = "id;headline;text\na1;Floods;Rain in the old town\na2;Votes;A new parliament\n"
    answer = browser.post(f"{SEEDS}/upload", data=values, files={"file": ("my seeds.csv", csv)})
    assert answer.status_code == 200, answer.text
    assert [s.text for s in ledger(folder).seeds[1:]] == ["Rain in the old town", "A new parliament"]
    lines = json.dumps({"id": "b1", "text": "one more"}) + "\nnot JSON\n"
    answer = browser.post(f"{SEEDS}/upload", data=values, files={"file": ("b.jsonl", lines)})
    assert "1 record was left out." in answer.text
    assert len(ledger(folder).seeds) == 4


@pytest.mark.parametrize(
    ("name", "data"), [("", b""), ("x.pdf", b"%PDF-1.7 \x00\xff"), ("x.csv", b""), ("x.xlsx", b"PK")]
)
def test_a_file_that_holds_no_seeds_is_told_so_beside_its_field(
    folder: Path, browser: TestClient, name: str, data: bytes
) -> None:
    values = form(browser.get(SEEDS).text, "/seeds/upload")
    values.pop("file", None)
    answer = browser.post(f"{SEEDS}/upload", data=values, files={"file": (name, data)} if name else None)
    assert answer.status_code == 400
    assert 'id="upload-error"' in answer.text
    assert "/tmp" not in answer.text
    assert len(ledger(folder).seeds) == 1


def test_settings_are_stored_all_or_none(folder: Path, browser: TestClient) -> None:
    values = form(browser.get(SETTINGS).text, "/settings") | {"unit": "topic"}
    answer = browser.post(SETTINGS, data=values | {"target": "95,5", "until": "10", "double": "true"})
    assert answer.status_code == 200
    stored = ledger(folder).settings
    assert (stored["target"], stored["until"], stored["double"]) == (pytest.approx(0.955), 10, True)
    for wrong in (
        {"target": "much"},
        {"target": "900"},
        {"audit": "0"},
        {"until": "-1"},
        {"audit": "inf"},
        {"unit": "x"},
    ):
        answer = browser.post(SETTINGS, data=values | wrong)
        assert "Enter a share of at most 100 per cent" in answer.text
        assert answer.status_code == 400, wrong
        assert 'class="error"' in answer.text
    assert ledger(folder).settings == stored


def test_progress_counts_and_draws(folder: Path, browser: TestClient) -> None:
    assert "Nothing was judged yet" in browser.get("/p/floods/progress").text
    with ledger(folder) as store:
        for i in range(12):
            time = f"2026-03-02T10:00:{10 + i}+00:00"
            store.add(Judgement("s1", f"f{i}", "relevant", "ana", model="1", time=time))
        store.add(Judgement("s1", "v1", "not", "ben", model="1"))
    browser.app.state.shelf.close_review(browser.app.state.workspace.project("floods"))  # type: ignore[attr-defined]
    page = browser.get("/p/floods/progress").text
    assert "13 of 27" in page
    assert "12 relevant documents were found in 13 that were read." in page
    assert "3,600" in page  # one document per second
    assert 'class="band"' not in page


def test_export_shows_what_may_be_published(folder: Path, browser: TestClient) -> None:
    with ledger(folder) as store:
        store.add(Judgement("s1", "f1", "relevant", "ana"))
        store.add(Judgement("s1", "v1", "not", "ben", phase="audit"))
    page = browser.get("/p/floods/export").text
    assert "we read 2, 1 of them drawn at random from what was still unread, and found 1 relevant." in page
    assert "Give no share at all" in page


def test_export_sends_a_file_of_its_name(folder: Path, browser: TestClient) -> None:
    assert "nothing to export" in browser.get("/p/floods/export").text
    with ledger(folder) as store:
        store.add(Judgement("s1", "f1", "relevant", "ana"))
        store.add(Judgement("s1", "v1", "not", "ben"))
    for suffix in ("csv", "xlsx", "jsonl", "ris", "qrels", "run"):
        answer = browser.get("/p/floods/export/file", params={"format": suffix})
        assert answer.status_code == 200, answer.text
        assert f'filename="floods.{suffix}"' in answer.headers["content-disposition"]
    lines = browser.get(
        "/p/floods/export/file", params={"format": "jsonl", "verdict": "relevant"}
    ).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["f1"]
    assert FLOODS in lines[0]
    for wrong in ({"format": "exe"}, {"verdict": "yes"}):
        assert browser.get("/p/floods/export/file", params=wrong).status_code == 404


def test_the_curve_ends_where_the_review_stands_and_the_pace_leaves_breaks_out() -> None:
    plot = curve([1, 1, 2, 3], 6, language("en"))
    assert plot.line.startswith("0,260")
    assert plot.line.endswith("640.0,130.0")  # 3 of 6, at the right
    assert [tick.label for tick in plot.x_ticks] == ["0", "1", "2", "3", "4"]
    assert plot.band == (0.0, 130.0)
    long = curve(list(range(1, 5001)), None, language("de"))
    assert len(long.line.split()) <= 325
    assert long.y_ticks[-1].label == "5.000"
    assert long.line.endswith("640.0,0.0")
    assert curve([0], None, language("en")).line == "0,260 640.0,260.0"
    assert per_hour([0, 10, 20, 30, 40, 50]) == pytest.approx(360)
    assert per_hour([0, 10, 20, 2000, 2010, 2020, 2030]) == pytest.approx(360)  # a break in the middle
    assert per_hour([0, 10]) is None
    judgement = Judgement("s", "d", "relevant", "ana", time="2026-03-02T10:00:00+00:00")
    other = Judgement("s", "e", "not", "ana", time="2026-03-02T10:00:09+00:00")
    (pace,) = paces([Entry(1, judgement), Entry(2, other), Entry(3, judgement, undoes=1)])
    assert (pace.reviewer, pace.read, pace.found, pace.per_hour) == ("ana", 1, 0, None)


def test_one_tab_is_current(browser: TestClient) -> None:
    tabs = [
        re.findall(r'<a href="([^"]+)" aria-current="(\w+)"', re.findall(r'<nav class="sub".*?</nav>', text, re.S)[0])
        for text in (browser.get(f"/p/floods{page}").text for page in ("", "/seeds", "/compare", "/stop"))
    ]  # fmt: skip
    assert tabs == [
        [("/p/floods", "page")],
        [("/p/floods/seeds", "page")],
        [("/p/floods/compare", "page")],
        [],
    ]
