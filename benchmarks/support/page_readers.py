"""Readers in the page benchmark: a reviewer, whose waiting is timed, and a stranger, whose clicks are counted."""

import functools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.server.page.chromium import Server

PATIENCE = 600_000.0  # milliseconds for a job
ENDED = re.compile(r"/p/[\w-]+(/judge)?$")  # the page that a finished job leads to
# Visible words of a page, without text from the files that it shows.
WORDS = """() => {
  const theirs = ".preview, .doc, .lead, .rows, .others, .title, bdi, dd, option, [lang]:not(html)";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.checkVisibility({ visibilityProperty: true }) && !parent.closest(theirs + ", .hidden, .skip, script"))
      count += (walker.currentNode.data.match(/[\\p{L}\\p{N}][^\\s]*/gu) ?? []).length;
  }
  return count;
}"""


class Reader:
    """One reviewer's window, and the times of its actions."""

    def __init__(self, browser: Any, server: Server, relevant: set[str]) -> None:
        context = browser.new_context(viewport={"width": 1100, "height": 800}, locale="en-GB")
        context.add_cookies([{"name": "linker-reviewer", "value": "ana", "url": server.address}])
        self.page, self.relevant, self.faults = context.new_page(), relevant, []  # type: Any, set[str], list[str]
        self.times: dict[str, float] = {}
        self.next_ms: list[float] = []
        self.server_ms: list[float] = []
        self.address = server.address
        self.page.set_default_timeout(PATIENCE)
        self.page.on(
            "console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def timed(self, name: str, do: Callable[[], object]) -> None:
        """Run an action and record its seconds."""
        start = time.perf_counter()
        do()
        self.times[f"{name}_s"] = round(time.perf_counter() - start, 2)

    def make(self, name: str, posts: Path, articles: Path | None = None, job: str = "story") -> str:
        """Upload and index files in the page; return the address of the review."""
        page = self.page
        page.goto(f"{self.address}/new/{job}")
        page.set_input_files("#posts", posts)
        if articles:
            page.set_input_files("#articles", articles)
        page.fill("#name", name)

        def send() -> None:
            page.get_by_role("button", name="Upload").press("Enter")
            page.wait_for_url("**/setup")

        def index() -> None:
            with page.expect_request(lambda request: ENDED.search(request.url)):
                page.locator("main form button.main").press("Enter")

        self.timed("upload", send)
        self.timed("index", index)
        if articles:  # with seeds, a finished job leads to the first document
            self.timed("first_document", lambda: page.wait_for_selector("#verdict"))
        else:
            page.wait_for_url(ENDED)
        return str(page.url).partition("/judge")[0]

    def judge(self) -> None:
        """Judge the document shown with a key, and wait for the next one."""
        document = self.page.get_attribute("#verdict", "data-document")
        key = "y" if document in self.relevant else "n"
        self._press(key, f'#verdict:not([data-document="{document}"])')

    def decide(self, links: set[tuple[str, str]]) -> None:
        """Decide the open row with a key: its candidate is a link, or it has no match."""
        form = self.page.locator("#verdict")
        row, document = str(form.get_attribute("data-row")), str(form.get_attribute("data-document"))
        self._press("y" if (row, document) in links else "0", f'#verdict:not([data-row="{row}"])')

    def _press(self, key: str, following: str) -> None:
        start = time.perf_counter()
        with self.page.expect_response(lambda r: r.request.method == "POST") as got:
            self.page.keyboard.press(key)
        self.page.wait_for_selector(f"{following}, main:not(:has(#verdict))")
        self.next_ms.append(1000 * (time.perf_counter() - start))
        self.server_ms.append(float(got.value.headers["server-timing"].partition("dur=")[2]))

    def begin(self, address: str) -> None:
        """Open the judging page for the first time and give the first verdict."""
        if "first_document_s" not in self.times:
            self.timed(
                "first_document",
                lambda: (self.page.goto(f"{address}/judge"), self.page.wait_for_selector("#verdict")),
            )
        self.judge()
        self.times["first_judgement_s"] = round(self.next_ms.pop() / 1000, 2)
        self.server_ms.pop()

    def open(self, address: str, *names: str) -> None:
        """Open pages of the review and record how long each takes."""
        for name in names:
            self.timed(name.partition("?")[0], functools.partial(self.page.goto, f"{address}/{name}"))

    def results(self) -> dict[str, Any]:
        """Return all times and the console's errors."""
        numbers = {"next_ms": self.next_ms, "server_ms": self.server_ms}
        quantiles = {
            f"{k}_p{p}": round(float(np.percentile(v, p)), 1) for k, v in numbers.items() for p in (50, 95)
        }
        return {**self.times, "judged": len(self.next_ms) + 1, **quantiles, "console": self.faults}


class Stranger:
    """Somebody's first visit: every click and every word of the page counts."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB").new_page()
        self.page.set_default_timeout(PATIENCE)
        self.clicks = self.words = 0
        self.start = 0.0
        self.page.goto(address)
        self.read()

    def read(self) -> None:
        """Read the page once."""
        self.words += self.page.evaluate(WORDS)

    def click(self, target: Any) -> None:
        """Click, as soon as there is something to click on."""
        target.click()
        self.clicks += 1

    def choose(self, field: str, path: Path) -> None:
        """Choose a file: a click on its field; with the first one, the clock starts."""
        self.start = self.start or time.perf_counter()
        self.page.set_input_files(field, path)
        self.clicks += 1
