"""The whole path in Chromium, at a newsroom's size: upload, index, the first judgement, the next document.

Two reviews are made by the page alone, and judged by keys: 10,000 statements beside 2,000 articles as XLSX files, and
the news of news-topics as JSON Lines with the seeds of one topic, read until the stopping rule ends the queue. Times:
`next_ms` is the time from the key to the next document in the browser; `server_ms` its part on the server. Wall-clock
times: other work on the machine counts.

Before them, both jobs are gone through as a stranger does, by the mouse: seconds, clicks and words of the page from the
first file to the first verdict. Words of the user's own files are not counted.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl

from benchmarks.support.common import parse_options, record, shared_data
from tests.server.page.chromium import Server, chromium, served

PATIENCE = 600_000.0  # milliseconds for a job
STATE = "p.state[lang=en]"  # why the queue may end
ENDED = re.compile(r"/p/[\w-]+(/judge)?$")  # where the end of a job leads
POSTS, ARTICLES = 10_000, 2_000
# Visible words of a page, without those of the files that it shows.
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
    """One reviewer's window, and what it took to answer them."""

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
        """Do something and keep its seconds."""
        start = time.perf_counter()
        do()
        self.times[f"{name}_s"] = round(time.perf_counter() - start, 2)

    def make(self, name: str, posts: Path, articles: Path | None = None) -> str:
        """Upload and index files in the page; return the address of the review."""
        page = self.page
        page.goto(f"{self.address}/new/story")
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
        if articles:  # with seeds, the end of the job leads on to the first document
            self.timed("first_document", lambda: page.wait_for_selector("#verdict"))
        else:
            page.wait_for_url(ENDED)
        return str(page.url).removesuffix("/judge")

    def judge(self) -> None:
        """Judge what is shown by a key, and wait for what comes next."""
        document = self.page.get_attribute("#verdict", "data-document")
        start = time.perf_counter()
        with self.page.expect_response(
            lambda r: r.url.endswith("/judge") and r.request.method == "POST"
        ) as got:
            self.page.keyboard.press("y" if document in self.relevant else "n")
        self.page.wait_for_selector(f'#verdict:not([data-document="{document}"]), main:not(:has(#verdict))')
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
        """Open pages of the review and keep how long each takes."""
        for name in names:
            self.timed(name.partition("?")[0], functools.partial(self.page.goto, f"{address}/{name}"))

    def results(self) -> dict[str, Any]:
        """Return all times and what the console complained of."""
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


def first_verdict(browser: Any, folder: Path, job: str, posts: Path, articles: Path) -> dict[str, Any]:
    """Go from the first file to the first verdict, and return seconds, clicks and words."""
    with served(folder / job) as server:
        stranger = Stranger(browser, server.address)
        page = stranger.page
        page.get_by_role("link", name="Choose files" if job == "story" else "Choose two files").click()
        stranger.read()
        stranger.choose("#posts", posts)
        stranger.choose("#articles", articles)
        stranger.click(page.get_by_role("button", name="Upload"))
        page.wait_for_url("**/setup")
        stranger.read()
        stranger.click(page.locator("main form button.main"))
        page.wait_for_selector("#who")
        stranger.read()
        page.fill("#who", "ana")
        stranger.click(page.locator(".who button"))
        verdict = page.locator("#verdict-relevant, #key-y")
        verdict.wait_for()
        stranger.read()
        with page.expect_response(lambda r: r.request.method == "POST"):
            stranger.click(verdict)
        seconds = round(time.perf_counter() - stranger.start, 1)
    return {"seconds": seconds, "clicks": stranger.clicks, "words": stranger.words}


def first_verdicts(browser: Any, folder: Path) -> dict[str, Any]:
    """Go through both jobs: statements beside articles as one story, and the check of each post."""
    data = shared_data()
    statements, tweets = data / "statements2articles", data / "tweets2claims"
    posts = sheet(folder / "statements.xlsx", records(statements / "queries.jsonl.gz")[:POSTS])
    articles = sheet(folder / "checks.xlsx", records(statements / "corpus.jsonl.gz")[:ARTICLES])
    claims = sheet(folder / "claims.xlsx", records(tweets / "corpus.jsonl.gz"))
    rows = sheet(folder / "tweets.xlsx", records(tweets / "queries.jsonl.gz"))
    found = {"story": first_verdict(browser, folder, "story", posts, articles)}
    return found | {"rows": first_verdict(browser, folder, "rows", claims, rows)}


def records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON Lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sheet(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records to an XLSX file with columns id, text."""
    book = openpyxl.Workbook(write_only=True)
    table = book.create_sheet("rows")
    table.append(["id", "text"])
    for row in rows:
        table.append([row["_id"], openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", row["text"])])
    book.save(path)
    return path


def statements(browser: Any, folder: Path, reads: int) -> dict[str, Any]:
    """Judge statements beside the articles that check them."""
    data = shared_data() / "statements2articles"
    posts = sheet(folder / "posts.xlsx", records(data / "queries.jsonl.gz")[:POSTS])
    chosen = records(data / "corpus.jsonl.gz")[:ARTICLES]
    articles = sheet(folder / "articles.xlsx", chosen)
    wanted, relevant = {a["_id"] for a in chosen}, set()
    for path in (data / "qrels").glob("*.tsv"):
        with path.open(encoding="utf-8") as rows:
            relevant |= {row[0] for row in csv.reader(rows, delimiter="\t") if row[1] in wanted}
    with served(folder / "statements") as server:
        reader = Reader(browser, server, relevant)
        address = reader.make("Statements", posts, articles)
        reader.begin(address)
        for _ in range(reads):
            reader.judge()
        reader.open(address, "search?q=taxes+on+gas", "progress", "compare", "export")
    return {"posts": POSTS, "articles": ARTICLES, **reader.results()}


def news(browser: Any, folder: Path, topic: str, least: int, most: int) -> dict[str, Any]:
    """Read one topic of the news until the stopping rule's estimate ends the queue, then audit."""
    data = shared_data() / "news-topics"
    seeds = next(s["metadata"]["documents"] for s in records(data / "seeds.jsonl.gz") if s["_id"] == topic)
    titles = {d["_id"]: d["title"] or d["text"][:200] for d in records(data / "corpus.jsonl.gz")}
    with (data / "qrels" / "topics.tsv").open(encoding="utf-8") as rows:
        relevant = {r[1] for r in csv.reader(rows, delimiter="\t") if r[0] == topic and r[2] != "0"}
    posts = folder / "news.jsonl.gz"
    posts.write_bytes((data / "corpus.jsonl.gz").read_bytes())
    with served(folder / "news") as server:
        reader = Reader(browser, server, relevant)
        page, address = reader.page, reader.make("News", posts)
        for id_ in seeds:
            page.goto(f"{address}/seeds")
            page.get_by_role("searchbox").fill(titles[id_])
            page.keyboard.press("Enter")
            page.locator(f'li:has(input[name=id][value="{id_}"]) button').press("Enter")
            page.get_by_role("link", name="judging").or_(
                page.get_by_role("link", name="Start reviewing")
            ).wait_for()
        reader.begin(address)
        while len(reader.next_ms) < most and (len(reader.next_ms) < least or not page.locator(STATE).count()):
            reader.judge()
        stopped = page.locator(STATE).inner_text() if page.locator(STATE).count() else ""
        queue, found = len(reader.next_ms) + 1, _found(page)
        page.goto(f"{address}/progress")
        page.get_by_role("button", name="Start an audit").press("Enter")
        page.goto(f"{address}/judge")
        while page.locator("#verdict").count() and "audit" in page.locator("#post-label").inner_text():
            reader.judge()
        audited = len(reader.next_ms) + 1 - queue
        reader.open(address, "search?q=ships+in+port", "progress", "compare", "export")
        page.goto(f"{address}/progress")
        claims = " ".join(page.locator("dl.claims").inner_text().split())
    about = {"documents": len(titles), "topic": topic, "relevant": len(relevant)}
    reached = {"read": queue, "found": found, "stopped": stopped, "audited": audited, "claims": claims}
    return {**about, **reached, **reader.results()}


def _found(page: Any) -> str:
    label = page.locator("#post-label")
    return " ".join(label.inner_text().split()) if label.count() else ""


def main() -> None:
    """Make both reviews in a browser, judge them, and record."""
    options = parse_options(
        __doc__,
        reads=(60, "of the statements, and the least of the news"),
        topic="ship",
        most=(2000, "reads of the news, at most"),
    )
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        results["first_verdict"] = first_verdicts(browser, Path(folder))
        print(json.dumps(results), file=sys.stderr)
        results["statements_xlsx"] = statements(browser, Path(folder), options.reads)
        print(json.dumps(results), file=sys.stderr)
        results["news"] = news(browser, Path(folder), options.topic, options.reads, options.most)
        print(json.dumps(results["news"]), file=sys.stderr)
    record("page", results)


if __name__ == "__main__":
    main()
