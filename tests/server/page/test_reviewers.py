"""Several readers of one review: reviewers are known before their first verdict, and nobody overwrites another."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from linker.review.interface import Seed
from linker.review.ledger import Ledger
from linker.review.links import make
from linker.review.project import Workspace
from linker.server.config import ServeConfig
from linker.server.page.app import create_app
from tests.server.page.matches import give_candidates
from tests.server.page.support import browser_of, client, form, ledger

JUDGE, SEARCH, LINKS = "/p/floods/judge", "/p/floods/search", "/p/floods/links"
SEEDS = [
    Seed("votes", "Voters elected a new parliament", "Elections"),
    Seed("rain", "Heavy rain flooded the streets of Valencia", "Rain"),
]


@pytest.fixture
def app(folder: Path) -> Any:
    return create_app(ServeConfig.of(folder))


@pytest.fixture
def pairs(folder: Path) -> Path:
    """A review of three seeds, each with its own links."""
    with ledger(folder) as kept:
        kept.put_seeds(SEEDS)
        kept.set("unit", "pairs")
    give_candidates(Workspace(folder).project("floods"), {})  # so that no job searches for them
    return folder


def document(browser: TestClient) -> dict[str, Any]:
    return dict(form(browser.get(JUDGE).text, "/judge"))


def test_a_visitor_without_a_name_has_no_document_and_cannot_judge(folder: Path, app: Any) -> None:
    ana, visitor = browser_of(app, "ana"), browser_of(app, "")
    page = visitor.get(JUDGE).text
    assert "First, your name" in page
    assert 'id="verdict"' not in page
    best = document(ana)  # nothing was reserved for the visitor
    values = best | {"csrf": form(page, "/reviewer")["csrf"], "verdict": "not"}
    refused = visitor.post(JUDGE, data=values)
    assert refused.status_code == 403
    assert "Nothing was stored: first say who judges." in refused.text
    assert form(refused.text, "/reviewer", 1)["back"] == JUDGE
    for path in ("/p/floods/search/judge", "/p/floods/undo", "/p/floods/compare/resolve"):
        assert visitor.post(path, data=values).status_code == 403
    hits = visitor.get(SEARCH, params={"q": "rain"}).text
    assert "/search/judge" not in hits
    assert ledger(folder).history() == ()
    assert 'id="verdict"' in visitor.post("/reviewer", data=form(page, "/reviewer", 1) | {"name": "vi"}).text


def test_a_new_name_keeps_the_document_and_two_browsers_of_one_name_have_two(app: Any) -> None:
    one, two = browser_of(app, "ana"), browser_of(app, "ana")
    before = document(one)["id"]
    assert document(two)["id"] != before
    one.post("/reviewer", data=form(one.get(JUDGE).text, "/reviewer") | {"name": "Ana María"})
    assert document(one)["id"] == before


def test_three_reviewers_read_everything_and_nothing_is_left_only_then(folder: Path, app: Any) -> None:
    ana, ben, cem = (browser_of(app, name) for name in ("ana", "ben", "cem"))
    held = [document(browser) for browser in (ben, cem)]
    while 'id="verdict"' in (page := ana.get(JUDGE).text):
        ana.post(JUDGE, data=form(page, "/judge") | {"verdict": "not", "copies": ""})
    assert "Nothing is left to read" not in page
    assert "Other reviewers have 2 documents open." in page
    ben.post(JUDGE, data=held[0] | {"verdict": "relevant", "copies": ""})
    assert "Another reviewer has 1 document open." in ana.get(JUDGE).text
    assert "Another reviewer has 1 document open." in ben.get(JUDGE).text
    cem.post(JUDGE, data=held[1] | {"verdict": "not", "copies": ""})
    for browser in (ana, ben, cem):
        assert "Nothing is left to read" in browser.get(JUDGE).text
    judged = [(j.id, j.reviewer) for j in ledger(folder).judgements()]
    assert len(judged) == len({id_ for id_, _ in judged}) == 27
    assert {name for _, name in judged} == {"ana", "ben", "cem"}


def test_a_tab_from_yesterday_overwrites_nobody(folder: Path, app: Any) -> None:
    ana, ben = browser_of(app, "ana"), browser_of(app, "ben")
    tab = document(ana)
    values = form(ben.get(SEARCH, params={"q": "witness"}).text, "/search/judge") | {"id": tab["id"]}
    ben.post("/p/floods/search/judge", data=values | {"verdict": "not"})
    refused = ana.post(JUDGE, data=tab | {"verdict": "relevant", "copies": ""})
    assert refused.status_code == 409
    assert "your verdict was not stored" in refused.text
    assert "<bdi>ben</bdi>: <strong>not relevant</strong>" in refused.text
    assert [(j.reviewer, j.verdict) for j in ledger(folder).judgements()] == [("ben", "not")]
    reload = form(refused.text, "/judge")
    assert reload["seen"] == "not "
    assert ana.post(JUDGE, data=reload | {"verdict": "relevant"}).status_code == 200  # ana has seen it now
    assert [(j.reviewer, j.verdict) for j in ledger(folder).judgements()] == [
        ("ben", "not"),
        ("ana", "relevant"),
    ]
    late = ana.post(JUDGE, data=tab | {"verdict": "maybe", "copies": ""})  # an older tab of her own
    assert late.status_code == 409
    assert "Your judgement was: relevant." in late.text
    for key in ("search", "judge"):
        stale = values | {"verdict": "maybe", "id": tab["id"]}
        assert (
            ben.post(f"/p/floods/{key}/judge".replace("/judge/judge", "/judge"), data=stale).status_code
            == 409
        )
    assert len(ledger(folder).history()) == 2


def test_a_tab_from_before_a_restart_is_stored(folder: Path) -> None:
    with client(folder, name="ana") as browser:
        tab, cookies = document(browser), dict(browser.cookies)
    app = create_app(ServeConfig.of(folder))
    ben, ana = browser_of(app, "ben"), browser_of(app, "ana")
    ana.cookies.update(cookies)
    assert document(ben)["id"] == tab["id"]  # ben requests it first
    assert ana.post(JUDGE, data=tab | {"verdict": "not", "copies": ""}).status_code == 200
    assert document(ben)["id"] != tab["id"]
    (judgement,) = ledger(folder).judgements()
    assert (judgement.reviewer, judgement.phase) == ("ana", "queue")


@pytest.mark.parametrize("phase", ["control", "audit", "queue", "nonsense"])
def test_a_form_cannot_say_why_a_document_was_shown(folder: Path, app: Any, phase: str) -> None:
    ana = browser_of(app, "ana")
    held = document(ana)
    extra = {"phase": phase, "rank": str(10**30), "score": "1e300", "probability": "7", "copies": ""}
    assert ana.post(JUDGE, data=held | extra | {"verdict": "not"}).status_code == 200
    other = document(ana) | extra | {"id": "v3", "verdict": "not"}
    assert ana.post(JUDGE, data=other).status_code == 200
    first, second = ledger(folder).judgements()
    assert (first.phase, second.phase) == ("queue", "search")
    assert first.score is not None
    assert abs(first.score) < 1e6
    assert (second.score, second.probability) == (0.0, None)


def test_what_the_review_lacks_is_refused_in_a_sentence(folder: Path, app: Any) -> None:
    ana = browser_of(app, "ana")
    values = document(ana) | {"verdict": "relevant"}
    for change in ({"seed": "s9"}, {"id": "none"}, {"seed": "", "id": "none"}):
        for path in (JUDGE, "/p/floods/search/judge"):
            answer = ana.post(path, data=values | change)
            assert answer.status_code in (400, 404), (path, change)
            assert 'role="alert"' in answer.text
        assert ana.get(JUDGE, params=change).status_code in (200, 400, 404)
    assert ledger(folder).history() == ()


def test_a_search_names_the_seed_and_asks_where_there_are_several(pairs: Path, app: Any) -> None:
    ana = browser_of(app, "ana")
    page = ana.get(SEARCH, params={"q": "parliament"}).text
    hit = form(page, "/search/judge")
    assert hit.get("seed", "") == ""  # none is chosen for the reviewer
    assert "1: Floods in Valencia</option>" in page
    assert "2: Elections</option>" in page
    answer = ana.post("/p/floods/search/judge", data=hit | {"verdict": "relevant"})
    assert answer.status_code == 400
    assert "to which the document belongs" in answer.text
    page = ana.post("/p/floods/search/judge", data=hit | {"verdict": "relevant", "seed": "votes"}).text
    assert '<span class="pill relevant">relevant</span> <bdi>2: Elections</bdi>' in page
    values = form(page, "/search/judge")
    assert values["seen"] == "relevant votes"
    page = ana.post("/p/floods/search/judge", data=values | {"verdict": "not", "seed": "rain"}).text
    assert '<span class="pill not">not relevant</span> <bdi>3: Rain</bdi>' in page
    assert {(j.seed, j.verdict) for j in ledger(pairs).judgements()} == {
        ("votes", "relevant"),
        ("rain", "not"),
    }
    page = ana.get(JUDGE).text
    header = form(page, "/search")  # the header's form, next to a row: for the open row
    assert header["seed"] == form(page, "/judge/rows?")["row"]
    hit = form(ana.get(SEARCH, params={"q": "parliament", "seed": header["seed"]}).text, "/search/judge")
    assert hit["seed"] == header["seed"]


def test_a_blind_review_shows_nobody_the_others_verdict(folder: Path, app: Any) -> None:
    with ledger(folder) as kept:
        kept.set("double", True)
    ana, ben = browser_of(app, "ana"), browser_of(app, "ben")
    first = document(ana)
    ana.post(JUDGE, data=first | {"verdict": "relevant", "copies": ""})
    for path in (f"{SEARCH}?q=witness", f"{JUDGE}?id={first['id']}&seed=s1", "/p/floods/doubts"):
        text = ben.get(path).text
        assert "<strong>relevant</strong>" not in text
        assert 'class="pill relevant"' not in text
    assert first["id"] not in ben.get("/p/floods/map/verdicts").json()
    assert ben.post(JUDGE, data=document(ben) | {"verdict": "not", "copies": ""}).status_code == 200
    assert len(ledger(folder).judgements()) == 2


def test_the_pairs_of_a_run_are_reserved_as_well(folder: Path, app: Any, tmp_path: Path) -> None:
    texts = {
        "x.run": "a Q0 b 1 .9 r\nc Q0 d 1 .8 r\n",
        "left.jsonl": '{"id": "a", "text": "x"}\n{"id": "c", "text": "x"}\n',
        "right.jsonl": '{"id": "b", "text": "y"}\n{"id": "d", "text": "y"}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    make(Workspace(folder).project("floods"), *(tmp_path / name for name in texts))
    assert "First, your name" in browser_of(app, "").get(LINKS).text
    ana, ben, cem = (browser_of(app, name) for name in ("ana", "ben", "cem"))
    first, second = (form(b.get(LINKS).text, "/links") for b in (ana, ben))
    assert (first["source"], second["source"]) == ("a", "c")
    assert "Other reviewers have 2 pairs open." in cem.get(LINKS).text
    assert cem.post(LINKS, data=form(cem.get(LINKS).text, "/links/undo") | second | {
        "csrf": form(cem.get(LINKS).text, "/links/undo")["csrf"], "verdict": "not"}).status_code == 200  # fmt: skip
    assert ben.post(LINKS, data=second | {"verdict": "relevant"}).status_code == 409
    with Ledger(folder / "floods" / "links.sqlite") as kept:
        assert [(j.reviewer, j.verdict) for j in kept.judgements()] == [("cem", "not")]


def test_what_was_judged_stands_beside_its_seed(folder: Path, pairs: Path, app: Any) -> None:
    ana = browser_of(app, "ana")
    values = form(ana.get(JUDGE, params={"id": "v3", "seed": "votes"}).text, "/judge")
    ana.post("/p/floods/search/judge", data=values | {"verdict": "relevant"})
    page = ana.get("/p/floods/judged").text
    assert "Elections" in page
    assert "seed=votes" in page
