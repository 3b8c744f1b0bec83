"""Comparisons, links and the map as pages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from linker.review.agreement import CONSENSUS
from linker.review.curve import scores
from linker.review.interface import Judgement, Verdict
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.server.jobs.points import save
from linker.server.page import compare
from tests.server.page.support import form

VERDICTS: dict[str, tuple[Verdict, ...]] = {
    "ana": ("relevant", "relevant", "not", "not"),
    "bo": ("relevant", "not", "not", "not"),
}


def judged(folder: Path) -> Ledger:
    ledger = Ledger(Workspace(folder).project("floods").ledger)
    for reviewer, verdicts in VERDICTS.items():
        pairs = zip(("f0", "f1", "v0", "v1"), verdicts, strict=True)
        ledger.add_all(Judgement("s1", id_, verdict, reviewer) for id_, verdict in pairs)
    return ledger


def test_two_reviewers_and_a_conflict_that_is_decided(browser: TestClient, folder: Path) -> None:
    with judged(folder) as ledger:
        text = browser.get("/p/floods/compare").text
        assert "<dd>0.5 " in text  # (3/4 − 1/2) / (1 − 1/2)
        assert "1 conflict" in text
        values = form(text, "/compare/resolve") | {"verdict": "relevant"}
        text = browser.post("/p/floods/compare/resolve", data=values).text
        assert "decided:" in text
        assert "By the 4 documents" in text  # the threshold curve uses the current decisions
        assert [j.id for j in ledger.judgements(CONSENSUS)] == ["f1"]


def test_scores_are_searched_once_until_a_judgement_changes_them(
    browser: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counted(*args: Any, **options: Any) -> Any:
        computed.append(1)
        return scores(*args, **options)

    monkeypatch.setattr(compare, "scores", counted)
    with judged(folder) as ledger:
        texts = [browser.get("/p/floods/compare").text for _ in range(2)]
        assert len(computed) == 1
        assert texts[0].partition("<h1")[2] == texts[1].partition("<h1")[2]
        ledger.add(Judgement("s1", "f2", "relevant", "ana"))
        browser.get("/p/floods/compare")
        assert len(computed) == 2


def test_two_runs_are_compared(browser: TestClient) -> None:
    one, two = b"q Q0 d1 1 .9 one\nq Q0 d2 2 .5 one\n", b"q Q0 d2 1 .9 two\nq Q0 d1 2 .5 two\n"
    files = [("runs", ("one", one)), ("runs", ("two", two)), ("qrels", ("q", b"q 0 d1 1\n"))]
    data = {"csrf": form(browser.get("/p/floods/compare").text, "/compare/upload")["csrf"]}
    text = browser.post("/p/floods/compare/upload", data=data, files=files).text
    assert "-0.5" in text
    assert "baseline</td>" in text
    assert (
        "Choose two rankings or more."
        in browser.post("/p/floods/compare/upload", data=data, files=files[:1]).text
    )


def test_uploads_are_named_without_the_path_of_their_copies(browser: TestClient) -> None:
    run, other = b"q Q0 d1 1 .9 linker\n", b"q Q0 d2 1 .9 linker\n"
    files = [("runs", ("a.run", run)), ("runs", ("b.run", other)), ("qrels", ("..", b"q 0 d1 1\n"))]
    compare = {"csrf": form(browser.get("/p/floods/compare").text, "/compare/upload")["csrf"]}
    text = browser.post("/p/floods/compare/upload", data=compare, files=files).text
    assert "<bdi>b.run</bdi>" in text and "baseline a.run;" in text
    assert 'aria-current="page">Compare</a>' in text
    files[0] = ("runs", ("../a.run", b"broken\n"))
    assert (
        '"alert">a.run:1: 1 column;'
        in browser.post("/p/floods/compare/upload", data=compare, files=files).text
    )
    pairs = {"run": ("x.jsonl", b"{}\n")}
    assert (
        '"alert">x.jsonl:1: not a pair'
        in browser.post("/p/floods/links/upload", data=compare, files=pairs).text
    )


def test_pairs_of_pages_are_judged_in_both_directions_of_writing(browser: TestClient, folder: Path) -> None:
    arabic, english = ({"id": "ar1", "text": "فيضانات", "language": "ar"}, {"id": "en1", "text": "Floods"})
    files = {
        "run": ("x.run", b"ar1 Q0 en1 1 .9 r\n"),
        "sources": ("ar.jsonl", str(arabic).replace("'", '"').encode()),
        "targets": ("en.jsonl", str(english).replace("'", '"').encode()),
    }
    data = {"csrf": form(browser.get("/p/floods/links").text, "/links/upload")["csrf"]}
    text = browser.post("/p/floods/links/upload", data=data, files=files).text
    assert 'lang="ar" dir="auto"' in text
    values = form(text, "/links") | {"verdict": "relevant"}
    assert "Every pair was judged" in browser.post("/p/floods/links", data=values).text
    assert browser.get("/p/floods/links/run").text.split()[:3] == ["ar1", "Q0", "en1"]


def test_the_map_is_sent_as_it_is_stored(browser: TestClient, folder: Path) -> None:
    assert "Draw the map" in browser.get("/p/floods/map").text
    save(Workspace(folder).project("floods").map, ["f0", "v0"], np.array([[0, 1], [65535, 2]], np.uint16), 1)
    assert "2 documents." in browser.get("/p/floods/map").text
    assert browser.get("/p/floods/map/points").content.endswith(b"\n\0\0\1\0\xff\xff\2\0")
    judged(folder).close()
    assert browser.get("/p/floods/map/verdicts").json()["f1"] == "mixed"
    assert "Heavy rain" in browser.get("/p/floods/map/text", params={"id": "f0"}).json()["text"]
    assert browser.get("/p/floods/map/text", params={"id": "no"}).status_code == 404
