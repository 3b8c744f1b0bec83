"""The catalogues are complete and keep their placeholders; the language and number formats follow the reader."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from starlette.testclient import TestClient

from linker.review import language as languages
from linker.review.interface import Progress, Read
from linker.review.language import FOLDER, LANGUAGES, SOURCE, catalogue, choose, language
from linker.review.stopping import make, method_note, price_of
from linker.review.wording import PAIRS, renamed, say
from tests.helpers import ROOT
from tests.server.page.support import form

TRANSLATED = sorted(set(LANGUAGES) - {SOURCE})
JINJA = {"**.html": {"newstyle_gettext": "true", "extensions": "jinja2.ext.i18n"}}
GERMAN_PRICE = (
    "Um eine Trefferquote ≥ 80 % zu sichern, sind zusätzlich zufällige Dokumente zu lesen: 6.480 (56 % von allen) bei "
    "15 Funden, 2.569 (22 % von allen) bei 50 Funden, 1.358 (12 % von allen) bei 100 Funden, 475 (4 % von allen) bei "
    "300 Funden."
)
GERMAN_PRICE_NOW = (
    "Gewissheit würde kosten: 1.807 weitere Dokumente für eine Trefferquote ≥ 80 % und 6.077 weitere Dokumente für "
    "eine Trefferquote ≥ 95 %, zufällig gezogen und gelesen, ohne dass eines davon relevant ist."
)
GERMAN_REASON = (
    "Geschätzt: Die angestrebte Trefferquote von 80 % ist erreicht, denn andernfalls wären 140 Dokumente ohne Fund "
    "unwahrscheinlich (p < 0,05). Die Stichprobe ist vollständig: 0 relevant unter 300, die zufällig aus dem "
    "Ungelesenen gezogen wurden. Durch eine Zufallsstichprobe gesichert: Die Trefferquote ist mindestens "
    "33 %, wenn alle Urteile stimmen. Mit einer statistischen Sicherheit von 95 % sind höchstens 121 relevante "
    "ungelesen geblieben, "
    "wenn alle Urteile stimmen."
)
GERMAN_NOTE = (
    "Von 11.665 Dokumenten (Quelle: Telegram) haben wir 500 gelesen, davon 300 zufällig aus den noch ungelesenen "
    "gezogen, und insgesamt 60 als relevant eingestuft. Nach einer Schätzung aus der Lesereihenfolge sind das "
    "mindestens 80 % aller relevanten Dokumente. Mit einer statistischen Sicherheit von 95 % beträgt der Anteil der "
    "übersehenen relevanten Dokumente höchstens 67 %, wenn alle Urteile stimmen. Mit einer "
    "statistischen Sicherheit von 95 % sind höchstens 121 "
    "relevante ungelesen geblieben, wenn alle Urteile stimmen."
)
GERMAN_CAUTIONS = [
    "Schreiben Sie nicht, alle relevanten Dokumente seien gefunden: Ungelesen sind noch 11.165.",
    "Schreiben Sie „mindestens 80 %“ nicht ohne „geschätzt“: Die Schätzung setzt voraus, dass ein relevantes Dokument "
    "viel früher an die Reihe kommt als ein anderes. Ihr entgeht, was den bisher gefundenen Dokumenten nicht ähnelt.",
    "Die Obergrenze für das Übersehene gilt mit der genannten Sicherheit, gleich in welcher Reihenfolge gelesen wurde. "
    "Sie ist eine Grenze und keine Schätzung: Schreiben Sie nicht, so viele seien übersehen worden.",
    "„Relevant“ ist, was die Prüfenden dafür hielten: Keine Zahl hier berücksichtigt Fehlurteile.",
]
PLACE = re.compile(r"%\(\w+\)s")


def messages() -> set[str | tuple[str, ...]]:
    """Return every message in the templates and the code, including those that are marked or made into sentences."""
    methods = [("**.html", "jinja2.ext:babel_extract"), ("**.py", "python")]
    keywords = {"_": None, "gettext": None, "ngettext": (1, 2), "message": None, "plural": (1, 2)}
    keywords |= {"say": None, "say_many": (1, 2)}
    found = {
        folder: {
            m if isinstance(m, str) else tuple(m)
            for _, _, m, _, _ in extract_from_dir(
                ROOT / "linker" / folder, methods, options_map=JINJA, keywords=keywords
            )
        }
        for folder in ("server", "review/stopping", "review/session")
    }
    return set().union(*found.values()) | {
        twin for m in found["review/stopping"] if (twin := of_pairs(m)) != m
    }


def of_pairs(m: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Return a sentence of the stopping rules as shown in a review of pairs, which counts pairs, not texts."""
    if isinstance(m, str):
        return m if "%(origin)s" in m else renamed(m, PAIRS)
    return tuple(renamed(form, PAIRS) for form in m)


def forms_of(message: str | tuple[str, ...]) -> tuple[str, ...]:
    return (message,) if isinstance(message, str) else tuple(message)


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_message_is_translated(code: str) -> None:
    translated = {m.id if isinstance(m.id, str) else tuple(m.id): m for m in catalogue(code) if m.id}
    wanted = messages()
    assert len(wanted) > 150
    assert sorted(map(str, wanted - set(translated))) == []
    assert sorted(map(str, set(translated) - wanted)) == [], "no longer in the pages"
    for id_, entry in translated.items():
        assert not entry.fuzzy, id_
        strings = [
            str(s or "") for s in (entry.string if isinstance(entry.string, tuple) else (entry.string,))
        ]
        assert all(strings), id_
        assert len(strings) == (1 if isinstance(id_, str) else catalogue(code).num_plurals)
        for string in strings:
            assert set(PLACE.findall(string)) <= {p for f in forms_of(id_) for p in PLACE.findall(f)}, id_
        if isinstance(id_, str):
            assert set(PLACE.findall(strings[0])) == set(PLACE.findall(id_)), id_


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.po")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_catalogue_is_well_formed(path: Path) -> None:
    with path.open("rb") as file:
        read = read_po(file, abort_invalid=True)
    assert str(read.locale) == path.parent.name
    assert list(read.check()) == []
    assert not read.obsolete


@pytest.mark.parametrize(
    ("wanted", "accepted", "code"),
    [
        ("", "", "en"), ("", "de-AT,de;q=0.9,en;q=0.8", "de"), ("", "en;q=0.5, fr;q=0.9", "fr"), ("", "es-419", "es"),
        ("", "ja, *;q=0.1", "en"), ("", "fr;q=0, es", "es"), ("fr", "de", "fr"), ("xx", "de", "de"),
        ("", "de;q=x, es;q=.1", "es"), ("", ";;,,=", "en"), ("../de", "", "en"),
    ],
)  # fmt: skip
def test_the_reader_chooses_the_language(wanted: str, accepted: str, code: str) -> None:
    assert choose(wanted, accepted).code == code


def test_numbers_are_the_locales_and_what_is_certified_is_never_rounded_up() -> None:
    german, english = language("de"), language("en")
    assert german.number(11665) == "11.665"
    assert english.number(1234.56, 1) == "1,234.6"
    assert german.percent(0.9) == "90\N{NO-BREAK SPACE}%"
    assert english.percent(0.9) == "90%"
    assert german.time("2026-03-02T10:00:00+01:00", "short") == "02.03.26, 09:00"
    assert german.time("no time") == "no time"
    assert languages.language(SOURCE).text("Judge") == "Judge"
    assert languages.language(SOURCE).plural("%(num)s seed", "%(num)s seeds", 1200) == "1,200 seeds"
    for share, text in ((0.4831, "48%"), (0.48999, "48%"), (0.29, "29%"), (1.0, "100%")):
        assert language("en").floor_percent(share) == text
    german = language("de")
    assert german.sentence("no sentence") == "no sentence"
    sentence = say(
        "Certified by random reads: recall is at least %(recall)s, if all verdicts are right.",
        recall=0.9,
    )
    assert german.sentence(sentence).endswith("mindestens 90\N{NO-BREAK SPACE}%, wenn alle Urteile stimmen.")
    tail = say("%(p)s", p=Decimal("1.23e-9"))
    assert german.sentence(tail) == "1,23E-9"


AUDITED = [Read(True)] * 60 + [Read(False)] * 140 + [Read(False, "audit")] * 300


def test_a_whole_review_is_told_in_german() -> None:
    rule = make("urn", 11_665, 0.8, {"certificate": "exact"})
    before = price_of(rule)
    for read in AUDITED:
        rule.update(read)
    state = rule.state
    note = method_note(Progress(500, 60, 0, 0, 11_665, [], state, "queue", ""), 0.8, 300, source="Telegram")
    tell = language("de").sentence
    percent = "\N{NO-BREAK SPACE}%"
    assert tell(before) == GERMAN_PRICE.replace(" %", percent)
    assert tell(price_of(rule)) == GERMAN_PRICE_NOW.replace(" %", percent)
    assert tell(state.reason) == GERMAN_REASON.replace(" %", percent)
    assert tell(note.text) == GERMAN_NOTE.replace(" %", percent)
    assert [tell(caution) for caution in note.cautions] == [
        text.replace(" %", percent) for text in GERMAN_CAUTIONS
    ]


def test_a_page_is_in_the_language_that_was_chosen(browser: TestClient) -> None:
    judge = "/p/floods/judge"
    assert '<html lang="de">' in browser.get(judge, headers={"accept-language": "de"}).text
    page = browser.get(judge).text
    browser.post("/language", data=form(page, "/language") | {"code": "fr"})
    page = browser.get(judge, headers={"accept-language": "de"}).text
    assert '<html lang="fr">' in page
    assert "Ressemble surtout à ce texte de départ (1 sur 1)" in page


def test_the_sentences_of_a_page_are_in_its_language(browser: TestClient) -> None:
    page = browser.get("/p/floods/judge").text
    browser.post("/p/floods/judge", data=form(page, "/p/floods/judge") | {"verdict": "relevant"})
    german = {"accept-language": "de"}
    progress, export = (
        browser.get(f"/p/floods/{name}", headers=german).text for name in ("progress", "export")
    )
    assert "Unter 15 gefundenen relevanten Dokumenten wird nichts behauptet (bisher: 1)." in progress
    assert "haben wir 1 gelesen und 1 als relevant eingestuft." in export
    assert "Nennen Sie gar keinen Anteil" in export
    assert 'lang="en"' not in (progress + export).replace('<option value="en" lang="en">', "")
