"""The catalogues are complete and keep their placeholders; the language and the forms of numbers follow the reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from starlette.testclient import TestClient

from linker.web import language as languages
from linker.web.language import FOLDER, LANGUAGES, SOURCE, catalogue, choose, language
from tests.helpers import ROOT
from tests.web.support import form

TRANSLATED = sorted(set(LANGUAGES) - {SOURCE})
JINJA = {"**.html": {"newstyle_gettext": "true", "extensions": "jinja2.ext.i18n"}}
PLACE = re.compile(r"%\(\w+\)s")


def messages() -> set[str | tuple[str, ...]]:
    """Return every message of the templates and the code, also those that `plural` and `message` mark."""
    methods = [("**.html", "jinja2.ext:babel_extract"), ("**.py", "python")]
    keywords = {"_": None, "gettext": None, "ngettext": (1, 2), "message": None, "plural": (1, 2)}
    found = extract_from_dir(ROOT / "linker" / "web", methods, options_map=JINJA, keywords=keywords)
    return {m if isinstance(m, str) else tuple(m) for _, _, m, _, _ in found}


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


def test_numbers_and_dates_are_the_locales() -> None:
    german, english = language("de"), language("en")
    assert german.number(11665) == "11.665"
    assert english.number(1234.56, 1) == "1,234.6"
    assert german.percent(0.9) == "90\N{NO-BREAK SPACE}%"
    assert english.percent(0.9) == "90%"
    assert german.time("2026-03-02T10:00:00+01:00", "short") == "02.03.26, 09:00"
    assert german.time("no time") == "no time"


@pytest.mark.parametrize(("share", "text"), [(0.4831, "48%"), (0.48999, "48%"), (0.29, "29%"), (1.0, "100%")])
def test_what_is_certified_is_never_rounded_up(share: float, text: str) -> None:
    assert language("en").floor_percent(share) == text


def test_a_page_is_in_the_language_that_was_chosen(browser: TestClient) -> None:
    judge = "/p/floods/judge"
    assert '<html lang="de">' in browser.get(judge, headers={"accept-language": "de"}).text
    page = browser.get(judge).text
    browser.post("/language", data=form(page, "/language") | {"code": "fr"})
    page = browser.get(judge, headers={"accept-language": "de"}).text
    assert '<html lang="fr">' in page
    assert "Texte de départ 1 sur 1" in page


def test_the_source_needs_no_catalogue() -> None:
    assert languages.language(SOURCE).text("Judge") == "Judge"
    assert languages.language(SOURCE).plural("%(num)s seed", "%(num)s seeds", 1200) == "1,200 seeds"
