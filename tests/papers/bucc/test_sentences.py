"""The first sentence in many languages: abbreviations, initials, decimals, file names, quotes and other full stops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.papers.bucc.sentences import after_first_stop, without_first_sentence

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
