"""A match for each row, over HTTP and without a script: states, verdicts, several readers, accepting unread."""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from linker.engine.engine import Engine
from linker.engine.evidence import evidence
from linker.review.interface import Candidate, Judgement, Seed
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.review.rows.candidates import load
from linker.server.config import ServeConfig
from linker.server.jobs.matching import run, specification
from linker.server.page.app import create_app
from linker.server.page.judging import document_view
from linker.server.page.matching import results
from tests.server.page.matches import FOUND, give_candidates, make_matching
from tests.server.page.support import browser_of, form, forms, opened

JUDGE, ROWS = "/p/checks/judge", "/p/checks/judge/rows"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matching")
    give_candidates(make_matching(folder))
    return folder


@pytest.fixture
def project(prepared: Path, tmp_path: Path) -> Project:
    folder = Path(shutil.copytree(prepared, tmp_path / "reviews"))
    return Workspace(folder).project("checks")


@pytest.fixture
def app(project: Project) -> Any:
    return create_app(ServeConfig.of(project.index.parent.parent))


@pytest.fixture
def ana(app: Any) -> Iterator[TestClient]:
    with browser_of(app, "ana") as browser:
        yield browser


@pytest.fixture
def ledger(project: Project) -> Ledger:
    return Ledger(project.ledger)


def open_row(browser: TestClient, **query: str) -> dict[str, Any]:
    """Return the values of the verdict form of the open row."""
    return dict(form(browser.get(ROWS, params=query).text, "/judge/rows?"))


def judge(browser: TestClient, verdict: str, at: str = "", **changes: str) -> dict[str, Any]:
    """Judge the row `at`, or the next open one, and return the form of the following row."""
    page = browser.get(ROWS, params={"row": at}).text
    answer = browser.post(ROWS, data=form(page, "/judge/rows?") | {"verdict": verdict} | changes)
    assert answer.status_code == 200
    found = [f for f in forms(answer.text) if "/judge/rows?" in f["action"] and "row" in f["values"]]
    return dict(found[0]["values"]) if found else {}


def states(text: str) -> list[int]:
    """Return the counts of all, matched, without a match, open."""
    import re

    return [int(n) for n in re.findall(r">(?:All|Matched|No match|Open) (\d+)<", text)]


def test_judge_leads_to_the_rows_which_are_counted_filtered_sorted_and_found(ana: TestClient) -> None:
    page = ana.get(JUDGE)
    assert page.url.path == ROWS
    assert states(page.text) == [5, 0, 0, 5]
    assert "30" not in page.text.partition("<main")[2].partition("<form")[0]  # 5 rows, 6 documents
    assert 'aria-current="true">Judge' in page.text or 'aria-current="page">Judge' in page.text
    assert "99% likely" in page.text
    judge(ana, "relevant")
    listed = (
        ana.get(ROWS, params={"band": "95", "state": "open"})
        .text.partition('class="list"')[2]
        .partition("</ol>")[0]
    )
    assert [i for i in ("r1", "r2", "r3", "r4", "r5") if f"row={i}" in listed] == ["r1", "r3"]
    by_file = ana.get(ROWS, params={"order": "file"}).text.partition('class="list"')[2]
    assert by_file.index("row=r1") < by_file.index("row=r2") < by_file.index("row=r3")
    assert "Row 5 of 5" in ana.get(ROWS, params={"to": "5"}).text
    assert "Row 3 of 5" in ana.get(ROWS, params={"to": "UNDER the ice"}).text
    assert "No row has this number or these words." in ana.get(ROWS, params={"to": "99"}).text
    assert "No rows match this filter." in ana.get(ROWS, params={"state": "none"}).text
    assert ana.get(ROWS, params={"start": "10000000"}).status_code == 200


def test_each_key_does_what_it_says(ana: TestClient, ledger: Ledger) -> None:
    first = open_row(ana)
    assert (first["row"], first["id"]) == ("r4", "schools")
    assert judge(ana, "relevant")["row"] == "r1"
    second = judge(ana, "not", copies="")
    assert (second["row"], second["id"]) == ("r1", "sharks2")
    assert judge(ana, "none", "r1")["row"] == "r3"  # though r1 has fallen behind it
    assert judge(ana, "later", "r3")["row"] == "r2"
    stored = [(j.seed, j.id, j.verdict, j.phase, j.probability) for j in ledger.judgements(rows=True)]
    assert stored == [
        ("r4", "schools", "relevant", "queue", 0.99), ("r1", "sharks", "not", "queue", 0.97),
        ("r1", "", "not", "row", None), ("r3", "", "skip", "row", None),
    ]  # fmt: skip
    assert [j.id for j in ledger.judgements()] == ["schools", "sharks"]  # the documents read
    page = ana.get(ROWS).text
    assert states(page) == [5, 1, 1, 3]
    judge(ana, "none")
    judge(ana, "none")
    assert open_row(ana)["row"] == "r3"  # left for later, it comes last
    judge(ana, "relevant")
    assert "Every row is decided" in ana.get(ROWS).text


def test_a_note_is_stored_with_the_verdict_and_stands_in_its_field(ana: TestClient, ledger: Ledger) -> None:
    judge(ana, "relevant", "r4", note="as the agency has it")
    assert [j.note for j in ledger.judgements()] == ["as the agency has it"]
    assert open_row(ana, row="r4")["note"] == "as the agency has it"


def test_near_copies_are_judged_together_and_an_undo_shows_its_row_again(
    ana: TestClient, ledger: Ledger
) -> None:
    page = ana.get(ROWS, params={"row": "r1"}).text
    assert "with its near copy" in page
    ana.post(ROWS, data=form(page, "/judge/rows?") | {"verdict": "relevant"})
    assert [(j.id, j.phase) for j in ledger.judgements()] == [("sharks", "queue"), ("sharks2", "search")]
    assert states(ana.get(ROWS).text) == [5, 1, 0, 4]
    ana.post("/p/checks/judge/rows/undo", data=form(ana.get(ROWS).text, "/undo?"))
    assert ledger.judgements() == ()
    judge(ana, "relevant")
    judge(ana, "none")
    undo = form(ana.get(ROWS).text, "/undo?")
    again = ana.post("/p/checks/judge/rows/undo", data=undo)
    assert form(again.text, "/judge/rows?")["row"] == "r1"
    assert [j.seed for j in ledger.judgements(rows=True)] == ["r4"]
    ana.post("/p/checks/judge/rows/undo", data=undo)
    assert ledger.judgements(rows=True) == ()
    assert ana.post("/p/checks/judge/rows/undo", data=undo).status_code == 200


def test_a_match_that_no_candidate_is_can_be_searched(ana: TestClient, ledger: Ledger) -> None:
    page = ana.get(ROWS, params={"row": "r5", "q": "ruins explorers"}).text
    values = form(page, "/judge/rows?")
    assert (values["row"], values["id"]) == ("r5", "city")
    ana.post(ROWS, data=values | {"verdict": "relevant"})
    (judgement,) = ledger.judgements()
    assert (judgement.seed, judgement.id, judgement.probability) == ("r5", "city", None)


def test_two_readers_have_two_rows_and_a_stale_tab_stores_nothing(
    app: Any, ana: TestClient, ledger: Ledger
) -> None:
    ben = browser_of(app, "ben")
    tab, his = open_row(ana), open_row(ben)
    assert (tab["row"], his["row"]) == ("r4", "r1")
    taken = ben.get(ROWS, params={"row": "r4"}).text
    assert "Another reviewer has this row open" in taken
    assert "Go to the next free row" in taken
    ben.post(ROWS, data=open_row(ben, row="r4") | {"verdict": "none"})
    refused = ana.post(ROWS, data=tab | {"verdict": "relevant"})
    assert refused.status_code == 409
    assert "This row was judged meanwhile" in refused.text
    assert [(j.reviewer, j.id) for j in ledger.judgements(rows=True)] == [("ben", "")]
    ana.post(ROWS, data=form(refused.text, "/judge/rows?") | {"verdict": "relevant"})  # having seen it
    assert states(ana.get(ROWS).text) == [5, 1, 0, 4]


def test_a_form_that_is_sent_twice_is_stored_once(ana: TestClient, ledger: Ledger) -> None:
    values = open_row(ana) | {"verdict": "relevant"}
    assert {ana.post(ROWS, data=values).status_code for _ in range(3)} == {200}
    assert len(ledger.history()) == 1
    closing = open_row(ana) | {"verdict": "none"}
    assert {ana.post(ROWS, data=closing).status_code for _ in range(3)} == {200}
    assert len(ledger.history()) == 2


def test_two_blind_reviewers_each_see_their_own_states(app: Any, ana: TestClient, ledger: Ledger) -> None:
    ledger.set("double", True)
    app.state.shelf.close_review(app.state.workspace.project("checks"))
    ben = browser_of(app, "ben")
    judge(ana, "relevant")
    assert states(ana.get(ROWS).text) == [5, 1, 0, 4]
    assert states(ben.get(ROWS).text) == [5, 0, 0, 5]
    assert open_row(ben)["row"] == "r4"


def test_several_matches_of_a_row_where_one_is_not_enough(ana: TestClient, ledger: Ledger) -> None:
    ana.post("/p/checks/judge/rows/several", data=form(ana.get(ROWS).text, "/several?row=r4"))
    same = judge(ana, "relevant")
    assert same["row"] == "r4"
    ana.post(ROWS, data=open_row(ana, row="r4", id="city") | {"verdict": "relevant"})
    assert [j.id for j in ledger.judgements()] == ["schools", "city"]
    assert states(ana.get(ROWS).text) == [5, 1, 0, 4]


def accept(browser: TestClient, level: str = "0.95") -> Any:
    page = browser.get(ROWS, params={"level": level}).text
    action = next(f for f in forms(page) if "/accept?" in f["action"])
    return browser.post(action["action"], data=action["values"])


def test_accepted_links_count_as_matched_never_as_read_and_go_as_a_whole(
    app: Any, ana: TestClient, ledger: Ledger
) -> None:
    judge(ana, "relevant", copies="")
    page = ana.get(ROWS).text
    assert "Accept 2 matches ≥ 95%" in page
    assert "probably none wrong" in page
    assert "not certified" in page
    before = opened(app, "checks").review.progress()
    text = accept(ana).text
    assert states(text) == [5, 3, 0, 2]
    assert "2 matches accepted unread" in text
    accepted = [j for j in ledger.judgements(rows=True) if j.phase == "accepted"]
    assert [(j.seed, j.id, j.reviewer, j.probability) for j in accepted] == [
        ("r1", "sharks", "ana", 0.97), ("r3", "city", "ana", 0.96)
    ]  # fmt: skip
    assert accepted[0].note == "Accepted unread at 95%"
    assert [j.id for j in ledger.judgements()] == ["schools"]
    assert opened(app, "checks").review.progress() == before
    note = ana.get("/p/checks/export").text
    assert "For each of 5 rows, we looked for a match among 6 documents." in note
    assert "Matched: 3; without a match: 0; undecided: 2." in note
    assert "Matches accepted unread, by their probability: 2." in note
    judge(ana, "none")  # judged since: only the acceptance is undone
    back = next(f for f in forms(ana.get(ROWS).text) if "/accept/undo" in f["action"])
    assert states(ana.post(back["action"], data=back["values"]).text) == [5, 1, 1, 3]
    accept(ana)
    # one press of u undoes all of it
    ana.post("/p/checks/judge/rows/undo", data=form(ana.get(ROWS).text, "/undo?"))
    assert states(ana.get(ROWS).text) == [5, 1, 1, 3]


def test_rows_that_changed_since_the_page_are_not_accepted(app: Any, ana: TestClient, ledger: Ledger) -> None:
    page = ana.get(ROWS).text
    action = next(f for f in forms(page) if "/accept?" in f["action"])
    judge(browser_of(app, "ben"), "none")
    refused = ana.post(action["action"], data=action["values"])
    assert refused.status_code == 409
    assert "The rows to accept have changed meanwhile" in refused.text
    assert ledger.judgements() == ()


def test_a_check_at_random_certifies_the_others(ana: TestClient) -> None:
    page = ana.get(ROWS).text
    assert "Read 2 drawn at random: if all of them are right, at most 1 of the other 1 can be wrong" in page
    ana.post("/p/checks/judge/rows/check", data=form(page, "/check?row=r4"))
    page = ana.get(ROWS).text
    assert "2 of 2 rows of the check are still to be read; they come first." in page
    assert "/accept?" not in page
    judge(ana, "relevant", copies="")
    judge(ana, "relevant", copies="")
    page = ana.get(ROWS).text
    assert (
        "You read 2 drawn at random and found 0 wrong. With 95 % confidence, at most 1 of the other 1 can be wrong, "
        "if all verdicts are right." in page
    )
    assert "Accept 1 match ≥ 95%" in page
    assert states(accept(ana).text) == [5, 3, 0, 2]


def test_the_calibration_of_the_index_certifies_without_a_check(project: Project, ana: TestClient) -> None:
    held = tuple(0.5 + i / 800 for i in range(400))
    give_candidates(project, FOUND, held, tuple(p > 0.51 for p in held))
    page = ana.get(ROWS).text
    assert "Tested on 400 judged links that nothing learned from" in page
    assert "not certified" not in page
    assert "at most 1<" in page or "at most 2<" in page


def test_what_cannot_be_is_refused(ana: TestClient, ledger: Ledger) -> None:
    values = open_row(ana)
    for changes in ({"row": "gone"}, {"id": "gone", "verdict": "not"}, {"verdict": "maybe"}):
        answer = ana.post(ROWS, data=values | {"verdict": "relevant"} | changes)
        assert answer.status_code in (400, 404, 409, 422), changes
    assert ana.get(ROWS, params={"level": "0.5"}).status_code == 400
    assert ana.get(ROWS, params={"row": "gone", "id": "gone"}).status_code == 200
    assert ledger.history() == ()


def test_a_list_of_rows_counts_rows_everywhere_and_pairs_nowhere(ana: TestClient) -> None:
    judge(ana, "none", "r5")
    judge(ana, "relevant", "r4")
    progress = ana.get("/p/checks/progress").text
    assert "Matched 1" in progress
    assert "pair" not in progress
    home, overview = ana.get("/").text, ana.get("/p/checks").text
    assert "1 without a match, 3 open" in home
    assert "<dt>No match</dt><dd>1</dd>" in overview
    assert ana.get("/p/checks/stop").url.path == "/p/checks/judge/rows"


def test_results_have_every_row(app: Any, ana: TestClient) -> None:
    judge(ana, "relevant")
    accept(ana)
    found = [(d.row.seed.id, d.state, d.match, d.probability, d.how) for d in results(opened(app, "checks"))]
    assert found == [
        ("r1", "matched", "sharks", 0.97, "accepted"), ("r2", "open", "", None, ""),
        ("r3", "matched", "city", 0.96, "accepted"), ("r4", "matched", "schools", 0.99, "read"),
        ("r5", "open", "", None, ""),
    ]  # fmt: skip


def test_somebody_without_a_name_sees_the_list_and_decides_nothing(app: Any, ledger: Ledger) -> None:
    visitor = browser_of(app, "")
    page = visitor.get(ROWS).text
    assert "First, your name" in page
    assert 'id="verdict"' not in page
    token = {"csrf": form(page, "/reviewer")["csrf"]}
    for path in ("", "/accept", "/undo", "/check", "/update", "/several"):
        data = token | {"row": "r1", "verdict": "none", "count": "3"}
        assert visitor.post(f"{ROWS}{path}", data=data).status_code == 403
    assert ledger.history() == ()


def wait(browser: TestClient) -> None:
    """Wait for the job to end."""
    for _ in range(600):
        if browser.get("/p/checks/job.json?task=match").json()["state"] != "running":
            return
        time.sleep(0.1)
    raise AssertionError("the job did not end")


def test_candidates_are_found_once_kept_and_brought_up_to_date(
    project: Project, app: Any, ledger: Ledger
) -> None:
    project.matches.unlink()
    with browser_of(app, "ana") as ana:
        assert "task=match" in str(ana.get(JUDGE).url)
        wait(ana)
        assert states(ana.get(JUDGE).text) == [5, 0, 0, 5]
        made = load(project.matches)
        assert made.rows["r1"][0].id in ("sharks", "sharks2")
        assert [made.rows[i][0].id for i in ("r2", "r3", "r4")] == ["bank", "city", "schools"]
        before = project.matches.stat().st_mtime_ns
    with browser_of(create_app(ServeConfig.of(project.index.parent.parent)), "ana") as ana:  # after a restart
        assert states(ana.get(JUDGE).text) == [5, 0, 0, 5]
        assert project.matches.stat().st_mtime_ns == before
        ledger.put_seeds([Seed("r6", "an aquarium lost its sharks in the storm")])
        opened(ana.app, "checks").review.refresh()
        assert "the candidates are being found again" in ana.get(ROWS).text
        wait(ana)
        assert states(ana.get(ROWS).text) == [6, 0, 0, 6]
        assert load(project.matches).rows["r6"][0].id == "aquarium"


def test_job_takes_known_matches_and_leaves_out_what_review_does(project: Project, ledger: Ledger) -> None:
    ledger.add(Judgement("r2", "bank", "relevant", "ana"))
    ledger.add(Judgement("r3", "city", "relevant", "ana", phase="accepted"))
    with Engine.open(project.index) as engine:
        claim = engine.document("schools")
    ledger.put_seeds([Seed("own", claim.text, document="schools")])
    assert run(specification(project, ledger), lambda *_: None) == {"rows": 6}
    made = load(project.matches)
    assert made.known == 1  # accepted links are not used for learning
    assert set(made.rows) == {"r1", "r2", "r3", "r4", "r5", "own"}
    assert "schools" not in [m.id for m in made.rows["own"]]
    assert made.rows["r2"][0].id == "bank"


def test_a_deleted_review_leaves_no_candidates_behind(project: Project) -> None:
    assert project.matches.is_file()
    project.delete()
    assert not project.index.parent.exists()


def test_a_long_candidate_is_shown_by_its_passage_and_as_a_whole_on_request(
    project: Project, app: Any
) -> None:
    filler = "Nothing of this sort was ever reported by anybody. " * 40
    found = opened(app, project.key)
    page = document_view(found, Candidate("r1", "sharks", 0.0))
    assert page.brief is None
    text = f"{filler}A shark swam along the motorway near Houston. {filler}"
    page = dataclasses.replace(
        page, evidence=evidence(found.engine.collection, "sharks motorway Houston", text)
    )
    assert page.brief is not None
    short = "".join(piece for piece, _ in page.brief.pieces)
    assert "A shark swam along the motorway" in short
    assert len(short) < 800 < len(text)
    assert (short[:2], short[-2:]) == ("… ", " …")
