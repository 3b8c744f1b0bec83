"""The running text of golden pages and of pieces of markup; the first sentence in many languages."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.papers.bucc.sentences import after_first_stop, without_first_sentence
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


# Language, first sentence, and the following text.
SENTENCES = [
    ("en", "Pi is 3.14, as foo.png shows.", "It is irrational."),
    ("en", "Dr. J. R. Smith (b. 3 May 1950 in St. Louis, U.S.) is a writer, e.g. of novels.", "He lives."),
    ("en", 'Version 2.0.1 (a.k.a. "Foo!") of node.js was released on Jan. 5, 2010.', "It ran."),
    ("en", "What is it?", "Nobody knows."),
    ("de", "Die Zahl ist 3.14, z. B. in bild.png.", "Sie ist irrational."),
    ("de", "Dr. Ernst Müller (* 3. Mai 1950 in St. Gallen; † 4. Juni 2000 ebd.) war Autor.", "Er schrieb."),
    ("de", "Die Müller GmbH & Co. KG wurde am 1. Januar 1990 gegründet.", "Sie besteht."),
    ("fr", "M. Dupont (né le 3 mars 1950 à Lyon) est l'auteur de foo.png.", "Il vit."),
    ("fr", "La bataille eut lieu au IIIe siècle av. J.-C. en Grèce.", "Elle dura."),
    ("fr", "Mme L. Martin habite au n° 3 de la rue.", "Elle écrit."),
    ("ru", "А. С. Пушкин (род. 26 мая 1799 г. в Москве) — поэт, т. е. писатель.", "Он жил в XIX в."),
    ("ru", "Версия 3.14 файла foo.png вышла в 2010 г. в России.", "Она работает."),
    ("ru", "Иванов — советский и рос. учёный.", "Он жил."),
    (
        "tr",
        "Prof. Dr. Ayşe Yılmaz (d. 3 Mayıs 1950, Ankara), 3.14 sürümlü foo.png dosyasının yazarıdır.",
        "Yazdı.",
    ),
    ("tr", "Türkiye 29 Ekim 1923'te kuruldu.", "Başkenti Ankara'dır."),
    ("zh", "圆周率约为3.14。", "文件是foo.png。"),
    ("zh", "松溪（2020年。估计）是一个镇。", "它很小。"),
    ("zh", "他说：“你好。”", "然后走了。"),
    ("ja", "松川（まつかわ。川）は3.14の川である。", "長い。"),
    ("ja", "『foo.png』は日本のファイルだ！", "次の文。"),
    ("es", "El Sr. García nació en EE. UU. el 3.14.", "Vive allí."),
    (
        "pl",
        "Jan Kowalski (ur. 3 maja 1950 r. w Warszawie) – polski prof. dr hab. i autor foo.png.",
        "Mieszka.",
    ),
    ("pt", "O Sr. A. Silva nasceu em S. Paulo em 1950.", "Ele vive."),
    ("it", "Il Sig. Rossi (n. 1950 a Roma) usa foo.png.", "Vive."),
    ("hi", "भारत 3.14 एक देश है।", "यह बड़ा है।"),
    ("ar", "هل هذا ملف foo.png؟", "نعم."),
    ("hy", "Երևանը քաղաք է։", "Այն մեծ է։"),
    ("und", "Version 3.14 of foo.png exists.", "It works."),
]


@pytest.mark.parametrize(("code", "first", "rest"), SENTENCES)
def test_the_first_sentence_is_left_out(code: str, first: str, rest: str) -> None:
    space = "" if code in ("zh", "ja") else " "
    assert without_first_sentence(f"{first}{space}{rest}", code) == rest


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("A title\n\nIt is a town. It is old.", "It is old."),  # lines without a full stop are dropped too
        ("It is a town.\nIt is old.", "It is old."),
        ("Start. x and y", "x and y"),
        ("It is (see below. Or not", "Or not"),  # a bracket that never closes
        ("no full stop at all", ""),
        ("The only sentence.", ""),
        ("", ""),
    ],
)
def test_lines_and_endings(text: str, rest: str) -> None:
    assert without_first_sentence(text, "en") == rest


def test_languages_without_full_stops_lose_their_first_line() -> None:
    assert without_first_sentence("กรุงเทพ เป็นเมือง\nมีคน", "th") == "มีคน"


@given(st.text(max_size=60), st.sampled_from(["en", "de", "fr", "ru", "tr", "zh", "ja", "th", "xx"]))
def test_what_remains_is_the_end_of_the_text(text: str, code: str) -> None:
    rest = without_first_sentence(text, code)
    assert text.rstrip().endswith(rest)
    assert not rest or len(rest) < len(text)


@pytest.mark.parametrize(
    ("code", "text", "rest"),
    [
        ("en", "Pi is 3.14, as shown. It is irrational.", "14, as shown. It is irrational."),
        ("de", "Er war Dr. Müller. Er lebte.", "Müller. Er lebte."),
        ("zh", "圆周率约为3.14。文件", "文件"),
        ("zh-hant", "松溪。它很小。", "它很小。"),
        ("fr", "sans point", ""),
    ],
)
def test_the_rule_of_the_paper_stops_at_the_first_full_stop(code: str, text: str, rest: str) -> None:
    assert after_first_stop(text, code) == rest
