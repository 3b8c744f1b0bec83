"""Chromium on the pages: judging only by keys, a server that dies, axe-core, phones and dark mode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linker.review.grouped import Grouped
from linker.review.grouped import save as keep
from linker.review.ledger import Ledger
from linker.review.links import make
from linker.review.project import Project, Workspace
from linker.server.jobs.points import save
from linker.server.page.sessions import REVIEWER
from tests.server.page.chromium import answered, axe, served
from tests.server.page.test_groups import story

JUDGE = "/p/floods/judge"
PAGES = (
    JUDGE, "/p/floods/seeds?q=rain", "/p/floods/progress", "/p/floods/export", "/p/floods/settings", "/p/floods/judged",
    "/p/floods/doubts", "/p/floods/stop", "/nowhere", "/", "/p/floods", "/p/floods/search?q=rain", "/p/floods/compare",
    "/p/floods/links", "/p/floods/map", "/p/floods/groups",
)  # fmt: skip
LOOKS = (("light", (1280, 900)), ("dark", (390, 844)))  # on a desk, and on a phone


@pytest.fixture
def browser(chrome: Any) -> Any:
    return chrome


def opened(browser: Any, name: str = "tess", **options: Any) -> tuple[Any, list[str]]:
    """Return a reviewer's page, and the list that collects its errors."""
    context = browser.new_context(**{"locale": "en-GB"} | options)
    if name:
        context.add_cookies([{"name": REVIEWER, "value": name, "url": "http://127.0.0.1"}])
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    return page, errors


def document(page: Any) -> str:
    return str(page.get_attribute("#verdict", "data-document"))


def write_pair(project: Project, folder: Path) -> None:
    """Give a review a run of one pair to judge under Links."""
    texts = {
        "x.run": "ar1 Q0 en1 1 .9 r\n",
        "ar.jsonl": '{"id": "ar1", "text": "فيضانات", "language": "ar"}\n',
        "en.jsonl": '{"id": "en1", "text": "Floods in the town"}\n',
    }
    for name, text in texts.items():
        (folder.parent / name).write_text(text, encoding="utf-8")
    make(project, *(folder.parent / name for name in texts))


def press(page: Any, key: str) -> None:
    """Press a key and wait until another document appears."""
    before = document(page)
    page.keyboard.press(key)
    page.wait_for_function("d => document.querySelector('#verdict')?.dataset.document !== d", arg=before)


def test_a_review_by_keys_alone_survives_a_kill(folder: Path, browser: Any) -> None:
    ledger = Ledger(folder / "floods" / "review.sqlite")
    page, errors = opened(browser)
    with served(folder) as server:
        page.goto(server.address + JUDGE)
        page.keyboard.press("Tab")  # the link to the content comes first
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        seen = []
        for key in "ynms":
            seen.append(document(page))
            press(page, key)
        assert [j.verdict for j in ledger.judgements()][:4] == ["relevant", "not", "maybe", "skip"]
        assert page.locator(".last .pill.skip").bounding_box()["x"] > 0
        assert "Document" in page.inner_text("#announce")
        press(page, "u")
        assert document(page) == seen[-1]
        page.keyboard.press("/")
        page.keyboard.type("nynm parliament")  # letters typed in a field do not judge
        assert page.evaluate("document.activeElement.id") == "find"
        page.keyboard.press("Enter")
        page.wait_for_selector(".hits")
        page.go_back()
        assert document(page) == seen[-1]
        page.keyboard.press("/")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert page.is_visible("#keys")
        page.keyboard.press("y")  # ignored while the key help is open
        page.keyboard.press("Escape")
        assert len(ledger.judgements()) == 3
        page.keyboard.press("t")
        page.keyboard.type("a draft")
        port = server.port
        server.kill()
    waiting = document(page)
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    page.wait_for_selector("#offline:not([hidden])")
    assert len(ledger.judgements()) == 3
    errors.clear()  # the browser reports that the server was gone
    with served(folder, port):
        page.reload()
        assert document(page) != ""
        assert len(ledger.judgements()) == 3
        if document(page) == waiting:
            assert page.input_value("#note") == "a draft"
        press(page, "y")
        assert len(ledger.judgements()) >= 4
    assert errors == []


def test_keys_can_be_turned_off(folder: Path, browser: Any) -> None:
    page, errors = opened(browser)
    with answered(folder) as server:
        page.goto(server.address + JUDGE)
        page.keyboard.press("?")
        page.click("#keys-on")
        page.keyboard.press("Escape")
        before = document(page)
        page.keyboard.press("y")
        page.reload()
        assert document(page) == before
        page.click("#verdict-not")
        page.wait_for_function("d => document.querySelector('#verdict')?.dataset.document !== d", arg=before)
        assert page.evaluate("document.activeElement.id") == "verdict-not"  # where the reviewer was
    assert errors == []


def test_without_scripts_everything_works(folder: Path, browser: Any) -> None:
    page, _ = opened(browser, java_script_enabled=False)
    with answered(folder) as server:
        page.goto(server.address + JUDGE)
        before = document(page)
        page.click("#verdict-relevant")
        assert document(page) != before
        page.click("#verdict-undo")
        assert document(page) == before


def test_two_browsers_give_their_names_and_overwrite_nobody(folder: Path, browser: Any) -> None:
    ledger = Ledger(folder / "floods" / "review.sqlite")
    ana, errors = opened(browser, "")
    ben, _ = opened(browser, "", java_script_enabled=False)
    with answered(folder) as server:
        for page, name in ((ana, "ana"), (ben, "ben")):
            page.goto(server.address + JUDGE)
            assert page.locator("#verdict").count() == 0  # nobody judges without a name
            page.fill("#who", name)
            page.click(".who button")
            page.wait_for_selector("#verdict")
        assert document(ana) != document(ben)
        tab = ana.context.new_page()
        tab.goto(server.address + JUDGE)
        read = document(tab)
        assert read == document(ana)  # one session, one document
        press(ana, "n")
        tab.keyboard.press("y")  # the older tab: her own verdict stands until she has seen it
        tab.wait_for_selector(".error[role=alert]:not([hidden])")
        assert "Your judgement was: not relevant." in tab.inner_text("main")
        assert document(tab) == read
        ben.click("#verdict-relevant")
        assert {(j.reviewer, j.verdict) for j in ledger.judgements() if not j.tags} == {
            ("ana", "not"), ("ben", "relevant"),
        }  # fmt: skip
    assert [e for e in errors if "409" not in e] == []


@pytest.mark.parametrize("language", ["de-DE", "fr-FR", "es-ES"])
def test_the_verdicts_fit_on_a_small_phone(folder: Path, browser: Any, language: str) -> None:
    page, _ = opened(browser, locale=language, viewport={"width": 320, "height": 700})
    with answered(folder) as server:
        page.goto(server.address + JUDGE)
        for button in page.locator(".verdicts > *").all():
            box = button.bounding_box()
            assert box["x"] + box["width"] <= 320, button.inner_text()


def show(page: Any, scheme: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=scheme)


def test_axe_finds_nothing(folder: Path, browser: Any) -> None:
    project = Workspace(folder).project("floods")
    save(project.map, ["f0", "v0"], np.array([[0, 1], [65535, 2]], np.uint16), 1)
    write_pair(project, folder)
    page, errors = opened(browser)
    with answered(folder) as server:
        page.goto(server.address + JUDGE)
        for key in "ynms":
            press(page, key)
        for path in PAGES:
            page.goto(server.address + path)
            for scheme, size in LOOKS:
                show(page, scheme, size)
                assert axe(page) == []
                wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
                assert not wide, f"{path} is too wide"
                for link in page.locator(".top nav a").all():
                    box = link.bounding_box()
                    assert box["x"] >= 0, f"{path}: {link.inner_text()} is cut off"
                    assert box["x"] + box["width"] <= size[0], f"{path}: {link.inner_text()} is cut off"
        for scheme, size in LOOKS:
            show(page, scheme, size)
            page.goto(server.address + JUDGE)
            page.click(".account summary")
            page.keyboard.press("?")
            assert axe(page) == []
            bar = page.locator(".actions").bounding_box()
            # The verdicts stay at the bottom, whatever the scroll position.
            assert bar["y"] + bar["height"] == size[1]
    assert [e for e in errors if "404" not in e] == []  # one of the pages does not exist


def test_the_token_is_asked_for(folder: Path, tmp_path: Path, browser: Any) -> None:
    token = tmp_path / "token"
    page, errors = opened(browser)
    with served(folder, 0, "--token-file", str(token)) as server:
        page.goto(server.address + JUDGE)
        assert axe(page) == []
        page.fill("#token", token.read_text())
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.address}/")
        page.goto(server.address + JUDGE)
        assert document(page)
        (cookie,) = [c for c in page.context.cookies() if c["name"] == f"linker-{server.port}"]
        assert cookie["httpOnly"]
        assert server.end() == 0
    assert errors == []


def test_keys_press_what_declares_them_on_every_page(folder: Path, browser: Any) -> None:
    project = Workspace(folder).project("floods")
    keep(project.groups, Grouped(1, 27, "stamp", (story(1, "f0 f1 f2 f3"), story(2, "v0 v1"))))
    write_pair(project, folder)
    page, errors = opened(browser)
    with answered(folder) as server:
        page.goto(server.address + "/p/floods/groups")
        for key in ("j", "x", "j", "Enter"):  # choose the first group, open the second
            page.keyboard.press(key)
        page.wait_for_url("**/groups/one?number=1")
        page.keyboard.press("j")
        page.keyboard.press("x")
        page.keyboard.press("g")
        page.keyboard.type("a")  # into the field, where it takes nothing out
        assert page.evaluate("document.activeElement.id") == "to"
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        page.wait_for_selector("text=3 documents")
        page.keyboard.press("u")
        page.wait_for_selector("text=4 documents")
        page.goto(server.address + "/p/floods/links")
        page.keyboard.press("y")
        page.wait_for_selector("text=Every pair was judged")
        page.keyboard.press("u")
        page.wait_for_selector("#pair-y")
    assert errors == []
