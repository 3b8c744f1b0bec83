"""Every printed number is right in both kinds of review: documents in a topic; seeds, documents and pairs."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from linker.review.interface import Candidate, Seed
from linker.review.ledger import Ledger
from linker.review.project import Workspace
from linker.review.session import note_of
from linker.server.config import ServeConfig
from linker.server.page.app import create_app
from tests.server.page.matches import give_candidates
from tests.server.page.support import browser_of, form, opened

SEEDS = (("votes", "Voters elected a parliament"), ("rain", "Heavy rain flooded the streets"))
DOCUMENTS, TOPIC, PAIRS = 27, 26, 80  # one seed is a document: 3 seeds × 27 documents minus its own
WORDS = {
    "en": ("documents", "pairs"), "de": ("Dokumenten?", "Paaren?"), "fr": ("documents", "paires"),
    "es": ("documentos", "pares"),
}  # fmt: skip
TEXTS = re.compile(r"<[^>]+>")


@pytest.fixture(params=["topic", "pairs"])
def kind(request: pytest.FixtureRequest, folder: Path) -> str:
    """A review of either kind, in which two documents were read and one was found."""
    with Ledger(folder / "floods" / "review.sqlite") as ledger:
        ledger.put_seeds([*(Seed(id_, text) for id_, text in SEEDS), Seed("s1", "x", document="rtl")])
        ledger.set("unit", request.param)
    if request.param == "pairs":  # so that no job searches for them
        give_candidates(Workspace(folder).project("floods"), {})
    browser = browser_of(create_app(ServeConfig.of(folder)), "ana")
    for id_, verdict in (("v1", "relevant"), ("v2", "not")):
        query = {"id": id_, "seed": "votes"} if request.param == "pairs" else {}
        values = form(browser.get("/p/floods/judge", params=query).text, "/judge")
        assert (
            browser.post("/p/floods/judge", data=values | {"verdict": verdict, "copies": ""}).status_code
            == 200
        )
    return str(request.param)


@pytest.fixture
def browser(folder: Path) -> TestClient:
    return browser_of(create_app(ServeConfig.of(folder)), "ana")


def texts(browser: TestClient, page: str, code: str) -> str:
    answer = browser.get(f"/p/floods/{page}", headers={"accept-language": code})
    assert answer.status_code == 200
    return " ".join(
        TEXTS.sub(" ", answer.text.partition("<main")[2]).replace("\N{NO-BREAK SPACE}", " ").split()
    )


@pytest.mark.parametrize("code", WORDS)
def test_the_pages_count_what_there_is(kind: str, browser: TestClient, code: str) -> None:
    document, pair = WORDS[code]
    pages = {page: texts(browser, page, code) for page in ("judge", "progress", "export", "compare")}
    together = " ".join(pages.values())
    if kind == "topic":
        assert not re.search(rf"\b{pair}\b", together)
        assert re.search(rf"\b2 \w+( \w+)? {TOPIC}\b", pages["judge"])
        assert re.search(rf"\b{TOPIC} {document}", pages["export"])
        assert re.search(r"\b2 \w+ 26\b", pages["progress"])
        return
    assert not re.search(rf"\b{PAIRS}\b(?! ?%)", together.replace(f"{PAIRS - 2}", ""))  # not the product
    assert not re.search(rf"\b({PAIRS}|{PAIRS - 2}|2) (\w+ )?{document}\b", together)
    assert re.search(r"\b3\b", pages["judge"])  # only its rows
    assert not re.search(rf"\b{pair}\b", pages["judge"])
    for page in ("progress", "export"):
        assert re.search(rf"\b3 \w+( \w+)*\b.*\b{DOCUMENTS} {document}", pages[page]), page
        assert not re.search(rf"\b{pair}\b", pages[page]), page  # rows are counted
    assert re.search(rf"\b2 {pair}|\b2 \w+ {pair}", pages["compare"])


def test_the_price_and_the_reason_are_of_the_kind(kind: str, folder: Path) -> None:
    app = create_app(ServeConfig.of(folder))
    review = opened(app, "floods").review
    progress, note = review.progress(), note_of(review)
    noun, other = ("documents", "pairs") if kind == "topic" else ("pairs", "documents")
    assert progress.population == (TOPIC if kind == "topic" else PAIRS)
    assert (progress.seeds, progress.documents) == ((0, TOPIC) if kind == "topic" else (3, DOCUMENTS))
    assert noun in progress.stop.reason
    assert other not in progress.stop.reason + progress.price
    assert note is not None
    assert f"relevant {noun} were found: {progress.population - 2} are unread" in note.cautions[0]
    if kind == "topic":
        assert note.text == "In 26 documents, we read 2 and found 1 relevant."
    else:
        assert note.text == (
            "For 3 seeds, we looked for links among 27 documents; we read 2 pairs and found 1 relevant."
        )


def test_a_review_that_was_read_to_the_end_and_one_with_an_audit(kind: str, folder: Path) -> None:
    review = opened(create_app(ServeConfig.of(folder)), "floods").review
    review.begin_audit()
    drawn = review.next("ana", "ana")
    assert drawn is not None
    review.judge(drawn, "not", "ana", holder="ana")
    note = note_of(review)
    assert note is not None
    assert "1 of them drawn at random" in note.text
    review.resume()
    for seed in review.seeds if kind == "pairs" else review.seeds[:1]:
        for id_ in review.engine.collection.rows.ids:
            candidate = Candidate(seed.id, id_, 0.0)
            if (seed.id, id_) in review.population and review.standing(candidate) is None:
                review.judge(candidate, "not", "ana")
    note = note_of(review)
    assert note is not None
    whole = {
        "topic": "We read all 26 documents and found 1 relevant.",
        "pairs": "For 3 seeds and 27 documents, we read every pair and found 1 relevant.",
    }
    assert note.text == whole[kind]
