"""The search page: copies folded, words marked, hits judged and taken as seeds."""

from pathlib import Path

from starlette.testclient import TestClient

from linker.review.ledger import Ledger
from linker.review.project import Workspace
from tests.server.page.support import HOSTILE, form, forms


def ledger(folder: Path) -> Ledger:
    return Ledger(Workspace(folder).project("floods").ledger)


def test_copies_are_one_line_and_judged_together(browser: TestClient, folder: Path) -> None:
    text = browser.get("/p/floods/search", params={"q": '"day 3, said witness"'}).text
    assert "1 copy folded" in text
    assert "<mark>witness</mark>" in text
    (values,) = [f["values"] for f in forms(text) if f["action"].endswith("/search/judge")]
    browser.post("/p/floods/search/judge", data=values | {"id": ["f3", "copy"], "verdict": "relevant"})
    with ledger(folder) as kept:
        judged = {(j.id, j.seed, j.verdict, j.phase) for j in kept.judgements()}
    assert judged == {("f3", "s1", "relevant", "search"), ("copy", "s1", "relevant", "search")}
    browser.post("/p/floods/undo", data=form(browser.get("/p/floods/judge").text, "/undo"))
    with ledger(folder) as kept:
        assert kept.judgements() == ()
    assert "<bdi>1: Floods in Valencia</bdi>" in text  # a topic of one seed names it


def test_a_hit_becomes_a_seed_once(browser: TestClient, folder: Path) -> None:
    values = form(browser.get("/p/floods/search", params={"q": "parliament"}).text, "/seeds/choose")
    text = browser.post("/p/floods/seeds/choose", data=values).text
    with ledger(folder) as kept:
        assert [s.document for s in kept.seeds] == ["", values["id"]]
    assert '<strong class="pill accent">seed</strong>' in text


def test_filters_take_ranges_and_values(browser: TestClient) -> None:
    text = browser.get("/p/floods/search", params={"q": "region", "from.day": "3", "to.day": "5"}).text
    assert [i for i in range(12) if f">v{i}<" in text] == [3, 4, 5]
    text = browser.get("/p/floods/search", params={"q": "witness", "is.place": "quarter 4"}).text
    assert [i for i in range(12) if f">f{i}<" in text] == [4]
    answer = browser.get("/p/floods/search", params={"q": "region", "from.day": "x"})
    assert answer.status_code == 400
    assert "cannot compare" in answer.text


def test_nothing_that_is_sent_becomes_markup_or_an_address(browser: TestClient) -> None:
    text = browser.get("/p/floods/search", params={"q": HOSTILE}).text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;" in text
    values = form(browser.get("/p/floods/search", params={"q": "rain"}).text, "/seeds/choose")
    for back in ("https://evil.example/", "//evil.example", "?q=\r\nx: y"):
        answer = browser.post("/p/floods/seeds/choose", data=values | {"back": back}, follow_redirects=False)
        assert answer.headers["location"].startswith("/p/floods/search")
        assert "\n" not in answer.headers["location"]
