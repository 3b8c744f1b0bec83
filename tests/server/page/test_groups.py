"""The pages for groups: creating them in a job; merging, splitting, moving and undoing; seeds; tables; and judging
pairs for a guarantee of precision."""

import csv
import io
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from indexes.interface import Document
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.grouped import Grouped, Item, Story, load, save
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.scoring.groups.asking import Stratum, recall
from linker.server.guard.tokens import Principal
from linker.server.jobs.grouping import run
from tests.server.page.support import form

GROUPS = "/p/floods/groups"


def story(number: int, ids: str, **more: Any) -> Story:
    items = tuple(
        Item(id_, 0.9, None, f"2024-01-{10 * number + i:02}", "en", "example.org")
        for i, id_ in enumerate(ids.split())
    )
    values: dict[str, Any] = {
        "probability": 0.95, "words": (f"word{number}",), "weakest": None, "leaving": (),
    } | more  # fmt: skip
    return Story(number, f"Story {number}", items[0].id, items=items, **values)


@pytest.fixture
def project(folder: Path) -> Project:
    """The review with two groups, the first of which would split."""
    found = Workspace(folder).project("floods")
    weak = {"weakest": ("f0", "f2", 0.6), "leaving": ("f2", "f3")}
    save(found.groups, Grouped(1, 27, "stamp", (story(1, "f0 f1 f2 f3", **weak), story(2, "v0 v1"))))
    return found


def post(browser: TestClient, page: str, action: str, number: int = 0, **values: Any) -> str:
    text = browser.get(page).text
    return browser.post(action, data=form(text, action, number) | values).text


def table(browser: TestClient) -> dict[str, tuple[str, str]]:
    """Return the group of each document, and its probability, as in the table."""
    rows = csv.DictReader(io.StringIO(browser.get(f"{GROUPS}/file?format=csv").content.decode("utf-8-sig")))
    return {row["id"]: (row["group"], row["probability"]) for row in rows}


def test_groups_are_made_by_a_job_and_listed(browser: TestClient, folder: Path) -> None:
    assert "Group the documents" in browser.get(GROUPS).text
    project = Workspace(folder).project("floods")
    spec: dict[str, Any] = {
        "corpus": {"index": str(project.index)}, "same": [], "different": [], "days": None, "precision": None,
    }  # fmt: skip
    report = run(spec | {"out": str(project.groups), "keep": ["rtl"]}, lambda what, done, total: None)
    stored = load(project.groups)
    assert report["groups"] == sum(len(s.items) > 1 for s in stored.stories) > 0
    assert [s.items[0].language for s in stored.stories if s.items[0].id == "rtl"] == ["ar"]
    text = browser.get(GROUPS).text
    assert "flooded" in text and "of 27 documents" in text and 'name="groups"' in text
    assert "rtl" not in table(browser), "a document that is alone is in no group"


def test_the_job_starts_from_the_page(browser: TestClient) -> None:
    for days in ("soon", "-5", "nan", "inf"):
        assert "Enter a number of days" in post(browser, GROUPS, GROUPS, days=days)
    text = post(browser, GROUPS, GROUPS, days="30")
    assert "In progress" in text
    post(browser, "/p/floods/job?task=group", "/p/floods/job/cancel?task=group")


def test_groups_are_listed_and_become_seeds_and_mistakes_change_nothing(
    browser: TestClient, project: Project
) -> None:
    text = browser.get(GROUPS).text
    assert text.index("Story 2") < text.index("Story 1")
    largest = browser.get(f"{GROUPS}?order=largest&look=timeline").text
    assert largest.index("Story 1") < largest.index("Story 2")
    assert largest.count('class="dot"') == 6 and 'datetime="2024-01-10"' in largest
    before, one = table(browser), f"{GROUPS}/one?number=1"
    assert "Choose two groups" in post(browser, GROUPS, f"{GROUPS}/merge", groups=["1"])
    assert "have changed meanwhile" in post(browser, GROUPS, f"{GROUPS}/merge", groups=["1", "9"])
    assert "Choose documents" in post(browser, one, one, what="apart")
    assert "must stay" in post(browser, one, one, what="apart", ids=["f0", "f1", "f2", "f3"])
    for to in ("", "1", "99", "x"):
        assert "Name the group" in post(browser, one, one, what="move", ids=["f0"], to=to)
    assert browser.get(f"{GROUPS}/one?number=9").status_code == 404
    assert browser.get(f"{GROUPS}/file?file=other.csv").status_code == 404
    assert table(browser) == before
    one = f"{GROUPS}/one?number=2"
    text = post(browser, one, f"{GROUPS}/one/seeds?number=2")
    assert "3 seeds" in text
    with Ledger(project.ledger) as ledger:
        assert [seed.document for seed in ledger.seeds] == ["", "v0", "v1"]


def test_group_shows_passage_of_longer_text_and_tab_is_marked(browser: TestClient, project: Project) -> None:
    engine = Engine.open(project.index)
    about = engine.document("f0").text
    engine.add([Document("long", f"Nobody slept. {about}")])
    save(project.groups, Grouped(1, 28, "next", (story(1, "f0 f1 long"),)))
    text = browser.get(f"{GROUPS}/one?number=1").text
    assert text.count('<span class="passage">') == 1, "what is all of a text is not underlined"
    assert "Nobody slept. <span" in text and 'aria-current="true">Groups</a>' in text
    assert 'aria-current="page">Groups</a>' in browser.get(GROUPS).text
    post(browser, GROUPS, f"{GROUPS}/check/draw", level="0.9")
    assert 'aria-current="true">Groups</a>' in browser.get(f"{GROUPS}/check").text


def test_groups_are_merged_split_moved_and_each_change_is_undone(
    browser: TestClient, project: Project
) -> None:
    before = table(browser)
    assert before["f0"] == ("1", "0.9") and before["v0"][0] == "2"
    text = post(browser, GROUPS, f"{GROUPS}/merge", groups=["2", "1"])
    assert "changed by hand" in text and "6 documents" in text
    assert {group for group, _ in table(browser).values()} == {"2"}
    assert table(browser)["f0"] == ("2", "0.9")
    post(browser, GROUPS, f"{GROUPS}/undo")
    assert table(browser) == before

    one = f"{GROUPS}/one?number=1"
    assert "Where it would split" in browser.get(one).text
    post(browser, one, one, 1, what="split")
    assert [table(browser)[i][0] for i in ("f0", "f1", "f2", "f3")] == ["1", "1", "3", "3"]
    post(browser, one, one, what="move", ids=["f1"], to="2")
    assert [table(browser).get(i, "")[:1] for i in ("f0", "f1", "v0")] == ["", ("2",), ("2",)]
    post(browser, GROUPS, f"{GROUPS}/undo")
    post(browser, GROUPS, f"{GROUPS}/undo")
    assert table(browser) == before
    post(browser, one, one, what="apart", ids=["f0", "f1"])
    assert [table(browser)[i][0] for i in ("f0", "f1", "f2", "f3")] == ["3", "3", "1", "1"]


def test_changes_outlive_the_next_grouping(browser: TestClient, project: Project) -> None:
    post(browser, GROUPS, f"{GROUPS}/merge", groups=["1", "2"])
    save(
        project.groups, Grouped(1, 27, "next", (story(1, "v0 v2"), story(2, "f1 f0 gone"), story(3, "v3 v4")))
    )
    found = table(browser)
    assert found["v0"][0] == found["f0"][0] != found["v3"][0]


def test_a_promise_is_tested_once_all_pairs_are_judged(browser: TestClient, project: Project) -> None:
    assert (
        "Draw pairs" in post(browser, GROUPS, f"{GROUPS}/check/draw", level="0.95") + browser.get(GROUPS).text
    )
    text = post(browser, GROUPS, f"{GROUPS}/check/draw", level="0.9")
    assert "0 of 7 pairs" in text
    for judged in range(7):
        assert "Not certain" not in text and "At least" not in text
        verdict = "skip" if judged == 2 else "relevant"
        text = post(browser, f"{GROUPS}/check", f"{GROUPS}/check", verdict=verdict)
    assert "6 of 7 pairs" in text
    text = post(browser, f"{GROUPS}/check", f"{GROUPS}/check", verdict="not")
    assert "Not certain" in text and "6 of 7" in text
    post(browser, f"{GROUPS}/check", f"{GROUPS}/check/undo")
    text = post(browser, f"{GROUPS}/check", f"{GROUPS}/check", verdict="relevant")
    assert "At least 90% of the pairs are right" in text and "for 2 groups" in text
    assert "belong together" in browser.get(GROUPS).text


def test_missed_pairs_are_estimated_from_pairs_within_groups_and_between_them(
    browser: TestClient, project: Project
) -> None:
    assert "How many pairs were missed" not in browser.get(GROUPS).text, "a file of an earlier version"
    stored = load(project.groups)
    pairs = tuple((f"f{i}", f"v{j}") for i in range(3) for j in range(2))
    strata = Stratum(7, (("f0", "f1"), ("v0", "v1"))), Stratum(6, pairs), Stratum(0, ())
    save(project.groups, replace(stored, stamp="next", strata=strata))
    assert load(project.groups).strata == strata
    text = post(browser, GROUPS, f"{GROUPS}/check/draw?what=missed")
    assert "0 of 8 pairs" in text
    for verdict in ("relevant", "relevant", "skip", *("not",) * 5, "relevant"):
        text = post(browser, f"{GROUPS}/check?what=missed", f"{GROUPS}/check?what=missed", verdict=verdict)
    estimate = recall([(7, 2, 2), (6, 6, 1), (0, 0, 0)])
    assert estimate[0] == 7 / 8 and f"About {estimate[0]:.0%}" in text
    assert f"About {estimate[0]:.0%}" in browser.get(GROUPS).text
    assert "7 of 8 pairs" in post(browser, f"{GROUPS}/check?what=missed", f"{GROUPS}/check/undo?what=missed")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    for content in ("", "[]", '{"generation":1,"documents":1,"stamp":"","stories":[{"items":[]}]}'):
        (tmp_path / "groups.json").write_text(content)
        with pytest.raises(InputError, match="is not a file of groups"):
            load(tmp_path / "groups.json")


def test_progress_is_shown_in_the_place_of_the_job(browser: TestClient, project: Project) -> None:
    app: Any = browser.app
    job = app.state.jobs.submit("group", {"same": ()}, Principal("page"), id_=f"group-{project.key}")
    while not app.state.jobs.get(job.id, Principal("page")).has_ended:
        time.sleep(0.1)
    failed = browser.get(f"/p/{project.key}/job?task=group").text
    assert 'aria-current="page">Groups</a>' in failed
    assert f'href="{GROUPS}">Back' in failed
