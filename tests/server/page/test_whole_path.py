"""The whole workflow in a browser, by keys: files, index, two reviewers, the server killed, audit, export.

LINKER_POSTS=10000 and LINKER_JUDGE=60 give newsroom scale; without them, it is small.
"""

import contextlib
import csv
import io
import os
import random
import re
from pathlib import Path

import openpyxl
from playwright.sync_api import Page, expect

from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from tests.server.page.chromium import Server, axe, chromium, served, window

POSTS, JUDGED = int(os.environ.get("LINKER_POSTS", "400")), int(os.environ.get("LINKER_JUDGE", "12"))
PLACES = ("plaza", "bridge", "station", "market", "school", "harbour", "old town")
STORIES = (
    "flooded after the heavy rain", "full of voters today", "closed for the marathon", "quiet this morning",
)  # fmt: skip


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write the posts and the articles as a fact-checker would have them, and return their paths."""
    chance, posts, articles = random.Random(0), folder / "posts.csv", folder / "articles.csv"
    with posts.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["tweet_id", "text", "lang", "date"])
        for i in range(POSTS):
            place, story = chance.choice(PLACES), STORIES[i % 40 and 1 + i % 3]
            text = f"The {place} is {story}, says witness {i} of {chance.random():.6f}"
            rows.writerow([f"t{i}", text, "en", f"2026-03-{i % 28 + 1:02}"])
    with articles.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["id", "title", "text"], ["a1", "Floods", "Heavy rain flooded the old town and the plaza"]]
        )
    return posts, articles


def judge(page: Page, times: int) -> int:
    """Judge by keys as a person would, and return how many were judged; the page shows the next document each
    time."""
    for _ in range(times):
        article = page.locator("section.post article")
        before = page.locator("#verdict").get_attribute("data-document")
        page.keyboard.press("y" if "flooded" in article.inner_text() else "n")
        expect(page.locator(f'#verdict[data-document="{before}"]')).to_have_count(0)
    return times


def judgements(project: Project) -> int:
    with Ledger(project.ledger) as ledger:
        return len(ledger.judgements())


def test_from_files_to_an_export_with_two_reviewers_and_a_power_cut(tmp_path: Path) -> None:
    posts, articles = write_files(tmp_path)
    folder, faults = tmp_path / "reviews", []  # type: tuple[Path, list[str]]
    with chromium() as browser, contextlib.ExitStack() as stack:
        server = stack.enter_context(served(folder))
        page = window(browser, server, "ana", faults)
        violations = []
        page.goto(server.address)
        violations += axe(page)
        page.get_by_role("link", name="Choose files for one story").press("Enter")
        violations += axe(page)
        page.set_input_files("#posts", posts)
        page.set_input_files("#articles", articles)
        page.fill("#name", "Floods 2026")
        page.keyboard.press("Enter")
        page.wait_for_url("**/setup")
        violations += axe(page)
        page.locator("main form button.main").press("Enter")
        # there are seeds: continue to Judge
        page.wait_for_url(re.compile(r"/p/floods-2026/judge$"), timeout=120_000)
        page.goto(f"{server.address}/p/floods-2026")
        violations += axe(page)
        (project,) = Workspace(folder).projects
        second = window(browser, server, "bo", faults)
        for each in (page, second):
            each.goto(f"{server.address}/p/floods-2026/judge")
        documents = {w.locator("#verdict").get_attribute("data-document") for w in (page, second)}
        assert len(documents) == 2  # nobody gets a document that another has open
        count = 0
        for _ in range(JUDGED // 4):
            count += judge(page, 1) + judge(second, 1)
        assert faults == []
        server.kill()
        assert judgements(project) == count  # no acknowledged judgement is lost
        page.keyboard.press("y")  # the server is down
        expect(page.locator("#offline")).to_be_visible()
        faults.clear()
        server = Server(folder, server.port)
        stack.callback(server.end)
        for each in (page, second):
            each.goto(f"{server.address}/p/floods-2026/judge")
        for _ in range(JUDGED // 4):
            count += judge(page, 1) + judge(second, 1)
        assert judgements(project) == count
        page.keyboard.press("u")
        expect(page.locator("#verdict")).to_be_visible()
        expect(page.locator("#main[aria-busy]")).to_have_count(0)  # the policy blocks evaluating our scripts
        assert judgements(project) == count - 1
        count += judge(page, 1) - 1
        violations += axe(page)
        for name in ("search?q=flooded+plaza", "seeds", "progress", "compare", "links", "map", "export"):
            page.goto(f"{server.address}/p/floods-2026/{name}")
            violations += axe(page)
        page.goto(f"{server.address}/p/floods-2026/progress")
        page.get_by_role("button", name=re.compile("audit", re.IGNORECASE)).press("Enter")
        page.goto(f"{server.address}/p/floods-2026/judge")
        expect(page.locator("#post-label")).to_contain_text("audit")
        count += judge(page, 2)
        page.goto(f"{server.address}/p/floods-2026/export")
        with page.expect_download() as download:
            page.locator("main form button").press("Enter")
        sheet = openpyxl.load_workbook(io.BytesIO(download.value.path().read_bytes())).worksheets[0]
        assert len(list(sheet.rows)) - 1 == count
        assert violations == []
        assert faults == []
