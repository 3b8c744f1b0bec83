"""The judging page through its forms: verdicts, undo, copies, several reviewers, state after a restart."""

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from linker.review.ledger import Ledger
from linker.server.page.judging import unwrap
from linker.server.page.rendering import SWAP
from tests.server.page.support import browser_of, client, form, ledger, make_review

JUDGE = "/p/floods/judge"


def judge(browser: TestClient, verdict: str, page: str = "", **more: Any) -> str:
    """Judge the document on a page (by default the next one) and return the following page."""
    values = form(page or browser.get(JUDGE).text, "/judge") | {"verdict": verdict} | more
    answer = browser.post(JUDGE, data=values)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_verdict_is_stored_and_the_next_document_comes(folder: Path, browser: TestClient) -> None:
    first = form(browser.get(JUDGE).text, "/judge")
    assert "Most like this seed (1 of 1)" in browser.get(JUDGE).text
    second = form(judge(browser, "relevant", note=" on the spot ", tags="eye, eye ,  water level"), "/judge")
    assert second["id"] != first["id"]
    (judgement,) = ledger(folder).judgements()
    assert (judgement.id, judgement.verdict, judgement.seed) == (first["id"], "relevant", "s1")
    assert (judgement.note, judgement.tags) == ("on the spot", ("eye", "water level"))
    assert judgement.score  # the score by which the document was ranked


def test_the_script_gets_the_next_page_at_once(browser: TestClient) -> None:
    values = form(browser.get(JUDGE).text, "/judge") | {"verdict": "not"}
    answer = browser.post(JUDGE, data=values, headers={SWAP: "1"}, follow_redirects=False)
    assert answer.status_code == 200
    assert form(answer.text, "/judge")["id"] != values["id"]
    assert "data-announce=" in answer.text
    plain = browser.post(JUDGE, data=values, follow_redirects=False)
    assert (plain.status_code, plain.headers["location"]) == (303, JUDGE)


def test_from_the_fifth_find_on_all_are_estimated(browser: TestClient) -> None:
    pages = [judge(browser, "relevant") for _ in range(5)]
    told = ["in nine of ten simulated reviews" in page for page in pages]
    assert told == [False] * 4 + [True]
    assert "An estimated " in browser.get("/p/floods/progress").text
    german = browser.get("/p/floods/progress", headers={"accept-language": "de"}).text
    assert "in neun von zehn simulierten Recherchen" in german


def test_an_audit_is_never_larger_than_what_is_unread(browser: TestClient) -> None:
    judge(browser, "relevant")
    (unread,) = re.findall(r"Audit (\d+) documents", browser.get("/p/floods/stop").text)
    assert f"Start an audit of {unread} random documents" in browser.get("/p/floods/progress").text


def test_undo_goes_far_back_and_shows_what_was_said(folder: Path, browser: TestClient) -> None:
    ids = []
    for verdict in ("relevant", "not", "maybe"):
        page = browser.get(JUDGE).text
        ids.append(form(page, "/judge")["id"])
        judge(browser, verdict, page, note=f"said {verdict}")
    token = form(browser.get(JUDGE).text, "/undo")
    for id_, verdict in zip(reversed(ids), ("maybe", "not", "relevant"), strict=True):
        page = browser.post("/p/floods/undo", data=token, headers={SWAP: "1"}).text
        assert form(page, "/judge")["id"] == id_
        assert f'value="said {verdict}"' in page
    assert ledger(folder).judgements() == ()
    assert len(ledger(folder).history()) == 6  # an undo is an entry
    assert "nothing to undo" in browser.post("/p/floods/undo", data=token, headers={SWAP: "1"}).text


def test_copies_are_judged_and_undone_with_their_document(folder: Path, browser: TestClient) -> None:
    page = browser.get(JUDGE, params={"id": "copy", "seed": "s1"}).text
    assert "copies" not in form(page, "/judge")  # opened by name: a single document
    original = browser.get(JUDGE)
    while form(original.text, "/judge")["id"] not in ("f3", "copy"):
        judge(browser, "not", original.text)
        original = browser.get(JUDGE)
    values = form(original.text, "/judge")
    assert values["copies"] == "true"
    assert "Judge its near duplicate with it" in original.text
    judge(browser, "relevant", original.text, tags="wet")
    found = {j.id: j for j in ledger(folder).judgements() if j.relevant}
    assert set(found) == {"f3", "copy"}
    other = found["copy" if values["id"] == "f3" else "f3"]
    assert other.tags == ("wet", f"copy of {values['id']}")
    assert other.phase == "search"  # audits do not count it as a random document
    browser.post("/p/floods/undo", data=form(browser.get(JUDGE).text, "/undo"))
    assert not any(j.relevant for j in ledger(folder).judgements())
    assert form(browser.get(JUDGE).text, "/judge")["id"] == values["id"]
    del values["copies"]  # the box is unticked
    browser.post(JUDGE, data=values | {"verdict": "not"})
    assert {j.id for j in ledger(folder).judgements()} & {"f3", "copy"} == {values["id"]}


def test_the_last_verdict_stays_in_sight(browser: TestClient) -> None:
    page = browser.get(JUDGE).text
    assert 'id="verdict-undo"' not in page  # nothing to undo yet
    text = page.partition('<article class="doc" dir="auto">')[2].partition("</article>")[0]
    page = judge(browser, "not", page)
    last = page.partition('<p class="last')[2].partition("</p>")[0]
    assert '<span class="pill not">not relevant</span>' in last
    assert text.rpartition(" ")[2] in last  # the number at the end, which only this text contains
    assert 'form="undo"' in last


def test_a_judgement_can_be_changed_later(folder: Path, browser: TestClient) -> None:
    page = browser.get(JUDGE).text
    id_ = form(page, "/judge")["id"]
    judge(browser, "relevant", page, note="first thought")
    judged = browser.get("/p/floods/judged").text
    assert f"id={id_}" in judged
    again = browser.get(JUDGE, params={"id": id_, "seed": "s1"}).text
    assert "Your judgement was: relevant." in again
    judge(browser, "not", again)
    (judgement,) = ledger(folder).judgements()
    assert (judgement.verdict, judgement.phase) == ("not", "queue")


def test_an_audit_draws_at_random_and_a_find_ends_it(folder: Path, browser: TestClient) -> None:
    values = form(browser.get("/p/floods/settings").text, "/settings") | {"audit": "5"}
    browser.post("/p/floods/settings", data=values)
    judge(browser, "relevant")
    page = browser.post(
        "/p/floods/progress/audit", data=form(browser.get("/p/floods/progress").text, "/audit")
    ).text
    assert "Random document" in page
    audited = form(page, "/judge")
    judge(browser, "not", page, copies="")
    page = judge(browser, "relevant", copies="")
    assert "Random document" not in page
    assert [j.phase for j in ledger(folder).judgements()] == ["queue", "audit", "audit"]
    # sent twice, after the audit
    again = browser.post(JUDGE, data=audited | {"verdict": "not", "copies": ""})
    assert again.status_code == 200
    assert len(ledger(folder).history()) == 3


def test_an_audit_comes_to_its_end(browser: TestClient) -> None:
    browser.post(
        "/p/floods/settings", data=form(browser.get("/p/floods/settings").text, "/settings") | {"audit": "2"}
    )
    judge(browser, "not")
    browser.post("/p/floods/progress/audit", data=form(browser.get("/p/floods/progress").text, "/audit"))
    judge(browser, "not", copies="")
    assert "Certified" not in browser.get(JUDGE).text
    page = judge(browser, "not", copies="")
    assert "Random document" not in page
    progress = browser.get("/p/floods/progress").text
    complete = "The audit is complete: 0 relevant among 2 drawn at random from the unread."
    bound = "With 95% confidence, at most 20 relevant ones are left unread, if all verdicts are right."
    for text in (page, progress):
        assert complete in text
        assert bound in text
    assert "Certified: at most 20 relevant ones are left unread, if all verdicts are right." in page
    assert "at most 20 relevant ones are left unread, if all verdicts are right</dd>" in progress
    assert "only random reads certify" not in progress
    assert "under way" not in progress
    assert bound in browser.get("/p/floods/export").text
    text = browser.get("/p/floods/progress", headers={"accept-language": "de"}).text
    assert "höchstens 20 relevante ungelesen geblieben" in text


def begin_to_stop(browser: TestClient) -> str:
    """Ask for one relevant document, find it, and return the page that follows."""
    values = form(browser.get("/p/floods/settings").text, "/settings") | {"until": "1", "audit": "10"}
    browser.post("/p/floods/settings", data=values)
    return judge(browser, "relevant", copies="")


def test_the_stop_screen_offers_three_ways_and_is_left_once(browser: TestClient) -> None:
    page = begin_to_stop(browser)
    assert "You can stop: you have found as many as you wanted" in page
    assert 'id="verdict"' not in page
    for way in ("/p/floods/export", "/progress/audit", "/stop/leave", "/undo"):
        assert way in page
    # 10 of the 25 unread
    assert "With 95% confidence, at most 5 relevant ones were missed, if all verdicts are right." in page
    assert 'id="verdict"' not in browser.get(JUDGE).text  # it stays until someone chooses
    page = browser.post("/p/floods/stop/leave", data=form(page, "/stop/leave")).text
    for _ in range(3):  # judging continues: the stop screen does not reappear
        page = judge(browser, "relevant", page, copies="")
        assert 'id="verdict"' in page
    assert 'href="/p/floods/stop"' in page


def test_an_audit_from_the_stop_screen_comes_back_to_it(browser: TestClient) -> None:
    page = begin_to_stop(browser)
    page = browser.post("/p/floods/progress/audit", data=form(page, "/progress/audit")).text
    for _ in range(10):
        assert "Random document" in page
        page = judge(browser, "not", page, copies="")
    assert "at most 5 relevant ones are left unread" in page
    assert 'action="/p/floods/stop/leave"' in page


def test_an_undo_on_the_stop_screen_leads_back(browser: TestClient) -> None:
    page = begin_to_stop(browser)
    page = browser.post("/p/floods/undo", data=form(page, "/undo")).text
    assert 'id="verdict"' in page
    assert "You can stop" not in page


def test_everything_can_be_read_to_the_end(browser: TestClient) -> None:
    page = browser.get(JUDGE).text
    reads = 0
    while 'id="verdict"' in page:
        page = judge(browser, "not", page)
        reads += 1
        assert reads <= 27
    assert "Nothing is left to read" in page
    assert "To the progress" not in page


def test_without_seeds_the_next_step_is_named(tmp_path: Path) -> None:
    make_review(tmp_path, seeds=False)
    browser = client(tmp_path)
    page = browser.get(JUDGE).text
    assert "No seeds yet" in page
    assert 'href="/p/floods/seeds"' in page
    hit = form(browser.get("/p/floods/search", params={"q": "flooded streets"}).text, "/search/judge")
    # a search starts a review, too
    browser.post("/p/floods/search/judge", data=hit | {"verdict": "relevant"})
    assert 'id="verdict"' in browser.get(JUDGE).text


def test_a_verdict_that_cannot_be_is_refused_in_words(folder: Path, browser: TestClient) -> None:
    values = form(browser.get(JUDGE).text, "/judge") | {"verdict": "relevant"}
    assert form(browser.get(JUDGE).text, "/judge")["id"] == values["id"]  # a reload shows the same document
    for change in ({"verdict": "yes"}, {"id": "none"}, {"seed": "s9"}, {"id": ""}):
        answer = browser.post(JUDGE, data=values | change)
        assert answer.status_code in (400, 422), change
        assert 'role="alert"' in answer.text
    assert ledger(folder).judgements() == ()


def test_a_long_text_is_cut_and_can_be_had_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.server.page.judging.LONGEST", 20)
    make_review(tmp_path)
    browser = client(tmp_path)
    cut = browser.get(JUDGE).text
    assert "more characters" in cut
    assert "more characters" not in browser.get(JUDGE, params={"whole": "true"}).text


def test_the_judging_page_is_light(browser: TestClient) -> None:
    """At most 40 KB at first paint, including everything that the page loads."""
    page = browser.get(JUDGE)
    sizes = [len(page.content)]
    for address in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)):
        sizes.append(len(browser.get(address).content))
    assert len(sizes) >= 5
    assert sum(sizes) <= 40_000


def test_page_keeps_a_texts_direction_and_shows_the_criteria(browser: TestClient) -> None:
    page = browser.get(JUDGE, params={"id": "rtl", "seed": "s1"}).text
    assert '<article class="doc" dir="auto">' in page
    assert "غمرت الأمطار" in page
    page = browser.get(JUDGE).text
    browser.post("/p/floods/criteria", data=form(page, "/criteria") | {"criteria": "posts by\r\nwitnesses"})
    assert "posts by\nwitnesses</p>" in browser_of(browser.app, "ben").get(JUDGE).text


def test_lines_of_a_wrapped_text_flow_again() -> None:
    line = "a line of newswire that was wrapped by its sender at"
    wrapped = f"{line}\n{line}\n{line}\n{line}.\n A paragraph\n\nanother"
    assert unwrap(wrapped) == f"{line} {line} {line} {line}.\n A paragraph\n\nanother"
    for kept in ("roses are red\nviolets are blue\n" * 4, f"{line}\n{line}", f"{line}.\n" * 6):
        assert unwrap(kept) == kept


def test_an_audit_says_what_it_has_left_whichever_part_of_the_order_it_draws_from(
    browser: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linker.review.stopping.audit.BLOCK", 2)
    browser.post(
        "/p/floods/settings", data=form(browser.get("/p/floods/settings").text, "/settings") | {"audit": "9"}
    )
    page = browser.post(
        "/p/floods/progress/audit", data=form(browser.get("/p/floods/stop").text, "/audit")
    ).text
    left = []
    while "random document" in page:
        assert "(audit)" in page
        left.append(int(re.findall(r"(\d+) random documents? of the audit", page)[0]))
        page = browser.post(JUDGE, data=form(page, "/judge") | {"verdict": "not"}).text
    assert left == list(range(9, 0, -1))
    with Ledger(folder / "floods" / "review.sqlite") as ledger:
        assert {j.phase for j in ledger.judgements()} >= {"audit", "front"}
