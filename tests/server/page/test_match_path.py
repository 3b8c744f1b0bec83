"""The whole second job in a browser, by keys: two small files, two readers, a list with every row decided."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from linker.review.ledger import Ledger
from linker.review.project import Workspace
from tests.server.page.chromium import answered, axe, press, window
from tests.server.page.matches import CLAIMS, ROWS, give_candidates, make_matching

TRUTH = {"r1": "sharks", "r2": "bank", "r3": "city", "r4": "schools"}


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write the claims, and the rows that look for a match among them."""
    for name, texts in (("claims", CLAIMS), ("rows", ROWS)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("id", "text"), *texts.items()])
    return folder / "claims.csv", folder / "rows.csv"


def open_row(page: Page) -> tuple[str, str]:
    form = page.locator("#verdict")
    return str(form.get_attribute("data-row")), str(form.get_attribute("data-document"))


def decide(page: Page) -> None:
    """Give the right verdict on the candidate on screen."""
    row, document = open_row(page)
    if row not in TRUTH:
        press(page, "0")
    else:
        press(page, "y" if document.removesuffix("2") == TRUTH[row] else "n")


def test_from_two_files_to_a_list_in_which_every_row_is_decided(tmp_path: Path, chrome: Any) -> None:
    claims, rows = write_files(tmp_path)
    folder, faults, found = tmp_path / "reviews", [], []  # type: tuple[Path, list[str], list[str]]
    with answered(folder) as server:
        page = window(chrome, server, "ana", faults)
        page.goto(server.address)
        page.get_by_role("link", name="Choose two files").press("Enter")
        page.set_input_files("#posts", claims)
        page.set_input_files("#articles", rows)
        page.fill("#name", "Checks")
        page.keyboard.press("Enter")
        page.wait_for_url("**/setup")
        page.locator("main form button.main").press("Enter")
        # The candidates are found once, with a progress display.
        page.wait_for_url(re.compile(r"/judge/rows"), timeout=120_000)
        expect(page.locator(".states .open")).to_have_text("Open 5")
        found += axe(page)
        other = window(chrome, server, "ben", faults, color_scheme="dark")
        other.goto(f"{server.address}/p/checks/judge")
        assert open_row(page)[0] != open_row(other)[0]
        for _ in range(20):
            for each in (page, other):
                each.goto(f"{server.address}/p/checks/judge")
                if each.locator("#verdict").count():
                    decide(each)
        expect(page.get_by_role("heading", name="Every row is decided")).to_be_visible()
        found += axe(page) + axe(other)
        press(page, "u")
        expect(page.locator("#verdict")).to_be_visible()
        decide(page)
        for query in ("state=matched", "state=none", "row=r1", "order=file&band=0"):
            page.goto(f"{server.address}/p/checks/judge/rows?{query}")
            found += axe(page)
    assert found == []
    assert faults == []
    (project,) = Workspace(folder).projects
    with Ledger(project.ledger) as ledger:
        judgements = ledger.judgements(rows=True)
    matched = {(j.seed, j.id.removesuffix("2")) for j in judgements if j.relevant}
    assert matched == set(TRUTH.items())
    assert [(j.seed, j.id) for j in judgements if j.phase == "row"] == [("r5", "")]
    assert {j.reviewer for j in judgements} == {"ana", "ben"}


@pytest.mark.parametrize(
    "options", [{"viewport": {"width": 390, "height": 844}}, {"java_script_enabled": False}]
)
def test_a_phone_and_a_browser_without_scripts_do_the_job(
    tmp_path: Path, chrome: Any, options: dict[str, Any]
) -> None:
    project = make_matching(tmp_path / "reviews")
    give_candidates(project)
    faults: list[str] = []
    with answered(tmp_path / "reviews") as server:
        page = window(chrome, server, "ana", faults, **options)
        page.goto(f"{server.address}/p/checks/judge")
        assert open_row(page) == ("r4", "schools")
        page.click("#key-y")
        expect(page.locator("#verdict")).to_have_attribute("data-row", "r1")
        page.click("#other")
        expect(page.locator("#verdict")).to_have_attribute("data-document", "aquarium")
        page.click("#key-0")
        expect(page.locator("#verdict")).not_to_have_attribute("data-row", "r1")
        page.click(".accept button")
        expect(page.locator(".states .good")).to_have_text("Matched 2")
        page.click("#key-u")
        expect(page.locator(".states .good")).to_have_text("Matched 1")
        if "viewport" in options:
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 390
            assert axe(page) == []
    assert faults == []


def test_the_list_is_walked_by_keys_and_letters_in_a_field_judge_nothing(tmp_path: Path, chrome: Any) -> None:
    project = make_matching(tmp_path / "reviews")
    give_candidates(project)
    faults: list[str] = []
    with answered(tmp_path / "reviews") as server:
        page = window(chrome, server, "ana", faults)
        page.goto(f"{server.address}/p/checks/judge")
        page.keyboard.press("j")
        expect(page.locator("#verdict")).to_have_attribute("data-row", "r1")
        page.keyboard.press("k")
        expect(page.locator("#verdict")).to_have_attribute("data-row", "r4")
        page.locator(".seek input[type=search]").click()
        page.keyboard.type("yn0s bank")
        page.keyboard.press("Enter")
        expect(page.locator("#verdict")).to_have_attribute("data-document", "bank")
        press(page, "s")
        expect(page.locator("#verdict")).to_have_attribute("data-row", "r1")
        page.keyboard.press("o")
        expect(page.locator("#verdict")).to_have_attribute("data-document", "aquarium")
        page.keyboard.press("t")
        page.keyboard.type("y: as the town says")
        page.keyboard.press("Escape")
        press(page, "0")
    assert faults == []
    with Ledger(project.ledger) as ledger:
        made = [(j.seed, j.verdict, j.note) for j in ledger.judgements(rows=True)]
    assert made == [("r4", "skip", ""), ("r1", "not", "y: as the town says")]


@pytest.mark.parametrize("language", ["de", "fr", "es"])
def test_the_keys_fit_on_a_small_phone(tmp_path: Path, chrome: Any, language: str) -> None:
    give_candidates(make_matching(tmp_path / "reviews"))
    with answered(tmp_path / "reviews") as server:
        page = window(chrome, server, "ana", [], viewport={"width": 320, "height": 700}, locale=language)
        page.goto(f"{server.address}/p/checks/judge")
        for button in page.locator("#verdict > button").all():
            box = button.bounding_box()
            assert box["x"] + box["width"] <= 320, button.inner_text()
