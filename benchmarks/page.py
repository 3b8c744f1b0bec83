"""The whole workflow in Chromium, at newsroom scale: upload, index, the first judgement, the next document.

Two reviews are created only through the page, and judged by keyboard: 10,000 statements and 2,000 articles as XLSX
files, and the news of news-topics as JSON Lines with the seeds of one topic, read until the stopping rule ends the
queue. Times: `next_ms` is the time from the key to the next document in the browser; `server_ms` is the server's
share of it. Times are wall-clock times, so other load on the machine lengthens them.

In the second job, the posts of tweets2claims (test) look for their match among its 14,231 claims: the time to the
first row (with the job that finds all candidates), to the next one, and to accept the links that a random check
certifies. The wrong links among those accepted unread are counted by the data set's judgements.
"""

import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl

from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.page_readers import Reader, Stranger
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from tests.server.page.chromium import chromium, served

POSTS, ARTICLES, CLAIMS = 10_000, 2_000, 14_231


def first_verdict(browser: Any, folder: Path, job: str, posts: Path, articles: Path) -> dict[str, Any]:
    """Go from the first file to the first verdict; return seconds, clicks and words."""
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
    """Give the first verdict in each job: statements and articles as one story, and tweets to match with claims."""
    data = shared_data()
    statements, claims, tweets = data / "statements2articles", *match_files(folder)
    posts = sheet(folder / "statements.xlsx", [*records(statements / "queries.jsonl.gz")][:POSTS])
    articles = sheet(folder / "checks.xlsx", [*records(statements / "corpus.jsonl.gz")][:ARTICLES])
    found = {"story": first_verdict(browser, folder, "story", posts, articles)}
    return found | {"rows": first_verdict(browser, folder, "rows", claims, tweets)}


def sheet(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records to an XLSX file with columns id, text."""
    book = openpyxl.Workbook(write_only=True)
    table = book.create_sheet("rows")
    table.append(["id", "text"])
    for row in rows:
        table.append([row["_id"], openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", row["text"])])
    book.save(path)
    return path


def match_rows(browser: Any, folder: Path, rows: int) -> dict[str, Any]:
    """Check at random, accept the certified links, count the wrong ones, and decide some of the other rows."""
    links, (claims, posts) = match_links(), match_files(folder)
    with served(folder / "matching") as server:
        reader = Reader(browser, server, set())
        page, address = reader.page, reader.make("Matches", claims, posts, "rows")
        page.locator(".more summary").click()
        page.get_by_role("button", name="at random").click()
        checked = 0
        while page.locator(".more[open] strong").count():  # while rows of the check are unread
            reader.decide(links)
            checked += 1
        accept = page.locator(".accept")
        offered = " ".join(accept.inner_text().split())
        reader.timed("accept", lambda: (accept.locator("button").click(), accept.wait_for(state="detached")))
        for _ in range(rows):
            reader.decide(links)
        reader.open(address, "judge/rows", "export")
        with Ledger(Workspace(folder / "matching").project("matches").ledger) as ledger:
            accepted = [(j.seed, j.id) for j in ledger.judgements(rows=True) if j.phase == "accepted"]
    wrong = sum(pair not in links for pair in accepted)
    found = {"checked": checked, "offered": offered, "accepted": len(accepted), "wrong": wrong}
    return {"rows": len({row for row, _ in links}), "claims": CLAIMS, **found, **reader.results()}


def match_links() -> set[tuple[str, str]]:
    """Return the claims that the posts to match repeat: pairs of post and claim."""
    path = shared_data() / "tweets2claims" / "qrels" / "test.tsv"
    with path.open(encoding="utf-8") as rows:
        return {(row[0], row[1]) for row in csv.reader(rows, delimiter="\t") if row[2] == "1"}


def match_files(folder: Path) -> tuple[Path, Path]:
    """Write the claims and the posts to match as XLSX files, and return their paths."""
    data, wanted = shared_data() / "tweets2claims", {post for post, _ in match_links()}
    posts = [r for r in records(data / "queries.jsonl.gz") if r["_id"] in wanted]
    claims = [*records(data / "corpus.jsonl.gz")]
    assert len(claims) == CLAIMS
    return sheet(folder / "claims.xlsx", claims), sheet(folder / "tweets.xlsx", posts)


def statements(browser: Any, folder: Path, reads: int) -> dict[str, Any]:
    """Judge statements next to the articles that check them."""
    data = shared_data() / "statements2articles"
    posts = sheet(folder / "posts.xlsx", [*records(data / "queries.jsonl.gz")][:POSTS])
    chosen = [*records(data / "corpus.jsonl.gz")][:ARTICLES]
    articles = sheet(folder / "articles.xlsx", chosen)
    ids, relevant = {a["_id"] for a in chosen}, set()
    for path in (data / "qrels").glob("*.tsv"):
        with path.open(encoding="utf-8") as rows:
            relevant |= {row[0] for row in csv.reader(rows, delimiter="\t") if row[1] in ids}
    with served(folder / "statements") as server:
        reader = Reader(browser, server, relevant)
        address = reader.make("Statements", posts, articles)
        reader.begin(address)
        for _ in range(reads):
            reader.judge()
        reader.open(address, "search?q=taxes+on+gas", "progress", "compare", "export")
    return {"posts": POSTS, "articles": ARTICLES, **reader.results()}


def news(browser: Any, folder: Path, topic: str, least: int, most: int) -> dict[str, Any]:
    """Read one topic of the news until the stopping rule's estimate ends the queue."""
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
            seek = page.locator("main").get_by_role("searchbox")
            seek.fill(titles[id_])
            seek.press("Enter")
            page.locator(f'li:has(input[name=id][value="{id_}"]) button').press("Enter")
            page.get_by_role("link", name="judging").or_(
                page.get_by_role("link", name="Start reviewing")
            ).wait_for()
        reader.begin(address)
        while len(reader.next_ms) < most and (
            len(reader.next_ms) < least or page.locator("#verdict").count()
        ):
            if not page.locator("#verdict").count():
                page.get_by_role("button", name="Go on judging").press("Enter")
                page.wait_for_selector("#verdict")
            reader.judge()
        reader.open(address, "search?q=ships+in+port", "progress", "compare", "export")
    return {"documents": len(titles), "topic": topic, "relevant": len(relevant), **reader.results()}


def _text(page: Any, selector: str) -> str:
    first = page.locator(selector).first
    return " ".join(first.inner_text().split()) if first.count() else ""


@benchmark(
    work=None,
    reads=(60, "of the statements, and the least of the news"),
    rows=(40, "of the posts that look for a match, decided after what could be accepted"),
    topic="ship",
    most=(2000, "reads of the news, at most"),
)
def measured(options: Arguments) -> Results:
    """Create the reviews in a browser, and judge them."""
    results: Results = {}
    with chromium() as browser:
        parts: dict[str, Callable[[], Any]] = {
            "first_verdict": lambda: first_verdicts(browser, options.work),
            "rows": lambda: match_rows(browser, options.work, options.rows),
            "statements_xlsx": lambda: statements(browser, options.work, options.reads),
            "news": lambda: news(browser, options.work, options.topic, options.reads, options.most),
        }
        for name, part in parts.items():
            results[name] = part()
            print(json.dumps(results[name]), file=sys.stderr)
    return results
