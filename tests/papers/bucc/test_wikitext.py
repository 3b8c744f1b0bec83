"""The running text of golden pages in eight languages, and of small pieces of markup, one construct each."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.papers.bucc.wikitext import strip_markup

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.wiki")), ids=lambda path: path.stem)
def test_golden_page(path: Path) -> None:
    text = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert strip_markup(path.read_text(encoding="utf-8")) == text.strip()


def test_there_are_golden_pages() -> None:
    assert {path.stem for path in GOLDEN.glob("*.wiki")} >= {"de", "fr", "ru", "tr", "zh", "ja", "es"}


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("[[a]]s and [[b|c d]]", "as and c d"),
        ("[[File:x.jpg|thumb|A [[b|c]] of {{d|[[e]]}}]]end", "end"),
        ("[[Bestand:Größe (1).SVG|10px]]end", "end"),
        ("[[Imagine: John Lennon]] is a film", "Imagine: John Lennon is a film"),
        ("[[kategori:Sted]][[Κατηγορία:Πόλεις]]end", "end"),
        ("see [[:Category:Towns]] and [[:File:x.jpg]]", "see Category:Towns and File:x.jpg"),
        ("[[en:Title]][[zh-min-nan:X]]end", "end"),
        ("[[en:Title|the English page]] [[:fr:X|le X]]", "the English page le X"),
        ("'''bold''' ''it'' '''''both''''' it's", "bold it both it's"),
        ("l'''ancien'' bourg, d'''''un'''''", "l'ancien bourg, dun"),
        ("L''''amour''' '''x'''", "L'amour x"),
        ("<nowiki>''x'' {{y}} &amp;</nowiki> ''z''", "''x'' {{y}} & z"),
        ("a<ref name=x/>b<ref>c [http://d e]</ref>f<references/>", "abf"),
        ("== A ==\nb\n=== C ===\nd", "b\n\nd"),
        ("x [http://a.b label] [//c.d] https://e.f/g. y", "x . y"),
        ("&amp; &#65;&#x42; &nbsp;&eacute;&nosuch;", "& AB é&nosuch;"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<!-- {{ -->x<!-- }} -->", "x"),
        ("x [[y]] <!-- z [[u]] {{v}}", "x y"),
        ("x <nowiki><!-- y</nowiki> &lt;!-- z", "x <!-- y <!-- z"),
        ("{{a|{{b|c}}|[[d|e}}]]}} x", "x"),
        ("x {{unclosed | [[y]] '''z'''", "x unclosed | y z"),
        ("{|\n| a\n{|\n| b\n|}\n|}\nend", "end"),
        ("<table><tr><td>x</td></tr></table>end", "end"),
        ("#REDIRECT [[Other]]\n{{R from move}}", ""),
        ("#WEITERLEITUNG [[Anderes]]", ""),
        ("# first\n# second", "first\nsecond"),
        ("__NOTOC__x__ЕБЕЗ__", "x"),
        ("-{zh-hant:電腦;zh-hans:电脑}--{A}--{H|x}--{T|y}-", "电脑A"),
        ("<math>\\frac{a}{{b}}</math>x<chem>H2O</chem>", "x"),
        ("<div class=x>a</div></span>b", "a\nb"),
        ("(; {{x}}, born 1950)", "(born 1950)"),
        ("a ({{x}}; {{y}}) b", "a b"),
        ("x\u00adyz\u00a0t", "xyz t"),
        ("AT&T, 3 < 4, [x], {y}", "AT&T, 3 < 4, [x], {y}"),
        ("no markup. at all", "no markup. at all"),
        ("", ""),
    ],
)  # fmt: skip
def test_construct(markup: str, text: str) -> None:
    assert strip_markup(markup) == text


def test_namespaces_of_a_wiki_are_used() -> None:
    markup = "[[Attachment:notes|x]][[Topic:Rivers]]end"
    assert strip_markup(markup) == "xTopic:Riversend"
    assert strip_markup(markup, frozenset({"attachment"}), frozenset({"topic"})) == "end"


PIECES = (
    "[[", "]]", "{{", "}}", "{|", "|}", "|", "''", "'''", "<ref>", "</ref>", "<nowiki>", "&amp;", "\n", "==", "a",
    " ", "File:x.png", "-{", "}-", "http://x.y", "<!--", "-->", "*", ":", "{{{", "}}}", "[", "]", "中",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_markup_has_a_text(pieces: list[str]) -> None:
    text = strip_markup("".join(pieces))
    assert text == text.strip()
    assert not any(mark in text for mark in ("\ue000", "\ue001", "\n\n\n"))


@given(
    st.text(
        st.characters(categories=("L", "N", "P"), exclude_characters="[]{}'<>&|~_=-*#:;()（）"), max_size=40
    )
)
def test_plain_text_stays(text: str) -> None:
    assert strip_markup(f"{text} [[a]]") == f"{text} a".strip()


def test_deep_nesting_ends() -> None:
    rng = random.Random(0)
    for depth in (50, 2000):
        assert strip_markup("{{" * depth + "x" + "}}" * depth + " end").endswith("end")
        assert isinstance(
            strip_markup("".join(rng.choice(("[[", "{{", "''", "|", "x")) for _ in range(depth))), str
        )


@pytest.mark.parametrize("opening", ["{{a|", "[[a|", "[http://x ", "{|\n", "<b>", "<ref>", "-{"])
def test_thousands_of_unclosed_marks_are_no_markup(opening: str) -> None:
    """Parsed as markup, they would take minutes."""
    assert strip_markup(opening * 30_000 + "end").endswith("end")
