"""Take the pictures of every page for the docs: `python -m benchmarks.report.screenshots`; look at each one afterwards.

`--every FOLDER` takes every screen instead: light and dark, on a desktop and a phone, in four languages, for visual
inspection.

The pages show the Lee news corpus: its opening sentences as posts, the rest of each story as an article.
"""

import argparse
import csv
import io
import itertools
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from PIL import Image

from benchmarks.support.common import ROOT
from linker.corpora import preview
from linker.demo.files import ABOUT
from linker.demo.training import lee_stories
from linker.engine.engine import Engine
from linker.evaluation import write_run
from linker.review.ledger import Ledger
from linker.review.links import make
from linker.review.project import Project, Workspace
from linker.review.session import Review
from linker.review.uploads import store
from linker.server.jobs.indexing import UploadedFile, specification
from linker.server.jobs.job import Job
from tests.server.page.chromium import Server, chromium, served
from tests.server.page.matches import give_candidates, make_matching

OUT = ROOT / "docs" / "images"
LARGEST = 80 * 1024  # maximum number of bytes per picture
PAGES = ("search?q=fire+storm", "seeds", "progress", "compare", "links", "map", "export")


EVERY = (
    "/", "/nowhere", "/new/story", "/new/rows", "/p/empty/judge", "/p/unread/setup", "/p/checks/judge/rows",
    "/p/checks/export",
    *(f"/p/KEY{page}" for page in ("", "/seeds", "/search?q=fire+storm", "/settings", "/judge", "/stop", "/judged",
      "/doubts", "/export", "/progress", "/compare", "/map", "/groups", "/links")),
)  # fmt: skip
LOCALES = {"en": "en-GB", "de": "de-DE", "es": "es-ES", "fr": "fr-FR"}
SIZES = {"desktop": (1280, 760), "phone": (390, 760)}
JUDGING = {
    "judge": (1100, 548, "light"),
    "judge-dark": (1100, 548, "dark"),
    "judge-phone": (390, 760, "light"),
}


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write posts and articles as spreadsheets, and return their paths."""
    background, test = lee_stories()
    stories = [*background, *test]
    paths = folder / "posts.csv", folder / "articles.csv"
    fire = [s for s in stories if s.id in ABOUT]
    dated = [[f"p{s.id}", s.opening, f"2002-01-{i % 28 + 1:02}"] for i, s in enumerate(stories)]
    rows = [["post_id", "text", "date"], *dated], [["id", "text"], *([f"a{s.id}", s.rest] for s in fire)]
    for path, table in zip(paths, rows, strict=True):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(table)
    return paths


def judge(project: Project, posts: int) -> None:
    """Judge posts as two reviewers who disagree on some, and draw the map."""
    engine = Engine(project.index)
    with Ledger(project.ledger) as ledger:
        ledger.set("double", True)
        ledger.set("criteria", "Posts about the bushfires of Christmas 2001 in New South Wales.")
        review = Review(engine, ledger)
        for number in range(posts):
            for name in ("ana", "bo"):
                candidate = review.next(name)
                assert candidate is not None
                text = engine.document(candidate.id).full_text.lower()
                is_fire = "fire" in text and not (name == "bo" and number % 9 == 4)
                review.judge(candidate, "relevant" if is_fire else "not", name)
        ledger.set("double", False)
    job = Job("map", {"index": str(project.index), "out": str(project.map)})
    assert job.wait(600) == "done", job.error or "the job takes too long"


ARABIC = {
    "id": "ar-1",
    "title": "فيضانات في فالنسيا",
    "language": "ar",
    "text": "غمرت المياه شوارع البلدة القديمة بعد أمطار غزيرة هي الأشد منذ ثلاثين عاما.",
}
ENGLISH = {
    "id": "en-1",
    "title": "Floods in Valencia",
    "language": "en",
    "text": "The streets of the old town are under water after the heaviest rain in thirty years.",
}


def link_files(folder: Path) -> list[Path]:
    """Write two pages in two languages and a run between them."""
    paths = [folder / "links.run", folder / "ar.jsonl", folder / "en.jsonl"]
    write_run(paths[0], [("ar-1", ["en-1"], [0.91])], "auto")
    for path, record in zip(paths[1:], (ARABIC, ENGLISH), strict=True):
        path.write_bytes(orjson.dumps(record) + b"\n")
    return paths


def save(page: Any, name: str, out: Path) -> None:
    """Take a picture, in as few colours as keep it small."""
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for colours in (128, 64, 32):
        buffer = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
        if buffer.tell() <= LARGEST:
            break
    (out / f"page-{name}.png").write_bytes(buffer.getvalue())
    print(f"{name}: {buffer.tell() / 1024:.0f} KB")


def window(
    browser: Any,
    server: Server,
    width: int = 1100,
    height: int = 760,
    scheme: str = "light",
    locale: str = "en-GB",
) -> Any:
    """Open a browser window of this size, signed in as ana."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, locale=locale
    )
    context.add_cookies([{"name": "linker-reviewer", "value": "ana", "url": server.address}])
    return context.new_page()


def take(out: Path) -> None:
    """Go through the pages as a reviewer does, and take a picture of each."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        folder = Path(scratch)
        posts, articles = write_files(folder)
        with served(folder / "reviews") as server:
            page = window(browser, server)
            page.goto(server.address)
            save(page, "projects-empty", out)
            page.goto(f"{server.address}/new/story")
            save(page, "new", out)
            page.set_input_files("#posts", posts)
            page.set_input_files("#articles", articles)
            page.fill("#name", "Bushfires 2001")
            page.keyboard.press("Enter")
            page.wait_for_url("**/setup")
            save(page, "setup", out)
            page.locator("main form button.main").press("Enter")
            page.wait_for_url(re.compile(r"/bushfires-2001/judge$"), timeout=120_000)
            page.goto(f"{server.address}/p/bushfires-2001")
            save(page, "project", out)
            (project,) = Workspace(folder / "reviews").projects
            page.goto(f"{server.address}/p/{project.key}/links")
            for field, path in zip(("run", "sources", "targets"), link_files(folder), strict=True):
                page.set_input_files(f"#{field}", path)
            page.locator("main form button.main").click()
        judge(project, 2)  # the third post still belongs to the story
        with served(folder / "reviews") as server:
            for name, size in JUDGING.items():
                page = window(browser, server, *size)
                page.goto(f"{server.address}/p/{project.key}/judge")
                save(page, name, out)
        judge(project, 30)
        with served(folder / "reviews") as server:
            page = window(browser, server)
            for name in PAGES:
                page.goto(f"{server.address}/p/{project.key}/{name}")
                if name == "map":
                    page.wait_for_selector("canvas[data-ready]")
                    page.hover("#map", position={"x": 530, "y": 250})
                    page.wait_for_timeout(400)
                save(page, name.partition("?")[0], out)
            page.goto(server.address)
            save(page, "projects", out)


UNREAD = "Export of March;;\n;;\nid;text;date\n" + "".join(
    f"p{day};The river floods street {day};{day}.12.2021\n" for day in range(1, 30)
) + "p30;;soon\np31\np32;The plaza is dry;soon\n"  # fmt: skip


def make_review(folder: Path) -> Project:
    """Create a judged review of the files with a map, links and wrong verdicts, and one without documents."""
    workspace = Workspace(folder / "reviews")
    workspace.create("Empty")
    unread = workspace.create("Unread")
    for role, rows in (("posts", UNREAD), ("articles", "id,text\na1,Rain floods the old town\n")):
        store(unread, f"{role}.csv", io.BytesIO(rows.encode()), role)
    give_candidates(make_matching(folder / "reviews"))
    project = workspace.create("Bushfires 2001")
    sources = {}
    for role, path in zip(("posts", "articles"), write_files(folder), strict=True):
        with path.open("rb") as file:
            kept = store(project, path.name, file, role)
        sources[role] = UploadedFile(kept, preview(kept).guess())
    job = Job("index", specification(project, [sources["posts"]], [sources["articles"]]))
    assert job.wait(600) == "done", job.error or "the job takes too long"
    columns = {source.path.name: source.to_json()["columns"] for source in sources.values()}
    project.describe(indexed=list(columns), columns=columns)
    make(project, *link_files(folder))
    judge(project, 90)
    with Ledger(project.ledger) as ledger:
        relevant = next(j for j in ledger.judgements("ana") if j.relevant)
        ledger.add(replace(relevant, verdict="not", note="mistaken?"))
    return project


def take_every(out: Path) -> None:
    """Take a picture of every screen in every form: OUT/LANGUAGE/SCREEN-SIZE-SCHEME.png."""
    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        project = make_review(Path(scratch))
        with served(Path(scratch) / "reviews") as server:
            for (code, locale), (size, (width, height)), scheme in itertools.product(
                LOCALES.items(), SIZES.items(), ("light", "dark")
            ):
                page = window(browser, server, width, height, scheme, locale)
                (out / code).mkdir(parents=True, exist_ok=True)
                for path in EVERY:
                    page.goto(server.address + path.replace("KEY", project.key))
                    if path.endswith("/map"):
                        page.wait_for_selector("canvas[data-ready]")
                    name = path.partition("?")[0].removeprefix("/p/KEY").strip("/").replace("/", "-")
                    name = name or ("files" if "KEY" in path else "start")
                    page.screenshot(
                        path=str(out / code / f"{name}-{size}-{scheme}.png"), full_page=size == "phone"
                    )
                page.context.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--every", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    if asked.every:
        take_every(asked.every)
    else:
        take(asked.out)
