"""Words of each language, and pages read from files."""

import json
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.lexicon.lexicon import from_pairs
from linker.crosslingual.methods import link
from linker.crosslingual.pages import chunks
from linker.crosslingual.pages.chunks import in_chunks
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages, count_terms, read_pages, split_languages
from linker.crosslingual.scoring.passages import passages_of
from linker.crosslingual.task import Task
from tests.crosslingual.tiny import numbered, pages


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        ("tr", "ISPARTA İstanbul'da IŞIK", ["ısparta", "istanbul", "da", "ışık"]), ("az", "QIZIL", ["qızıl"]),
        ("en", "İstanbul I IT", ["istanbul", "it"]), ("fr", "L'été, à ＡＢＣ x 42", ["été", "abc", "42"]),
        ("zh", "文件系統 abc", ["文件", "系统", "文件系统", "abc"]), ("ja", "日本語 abc", ["日本", "本語", "abc"]),
        ("hi", "हिन्दी भाषा", ["हिन्दी", "भाषा"]), ("de", "Größe STRASSE", ["größe", "strasse"]),
        ("xx", "", []),
    ],
)  # fmt: skip
def test_words(code: str, text: str, found: list[str]) -> None:
    words = language(code).words(text)
    assert [word for word in words if code != "zh" or word in found] == found


def test_arabic_words_lose_articles_endings_and_vowel_marks() -> None:
    forms = ("كتاب", "الكتاب", "كِتَاب", "كتـــاب", "كتابهم")
    assert len({language("ar").term(word) for word in forms}) == 1
    assert language("ar").terms("شرب القهوة 42 abc") == [
        language("ar").term(w) for w in ("شرب", "قهوة", "42", "abc")
    ]


def test_finnish_words_lose_the_endings_of_their_cases() -> None:
    forms = ("talo", "talon", "talossa", "talosta", "taloon", "talot", "talojen", "taloissa", "taloista")
    assert len({language("fi").term(word) for word in forms}) == 1


THREES = list(combinations(range(6), 3))  # pages of three of six words


def linked_by(words: Sequence[str], english: Sequence[str], pages: Pages) -> list[int]:
    """Link pages of THREES to the same in English by a dictionary of the words; return the best of each."""
    given = Dictionary(Path("words"), "tsv", tuple(zip(words, english, strict=True)))
    theirs = numbered([" ".join(english[i] for i in page) for page in THREES], "t", "en")
    targets: list[int] = link(Task(pages, theirs, (given,)), "dictionary").candidates.targets[:, 0].tolist()
    return targets


def test_a_finnish_dictionary_links_inflected_words() -> None:
    """Three words per page, each in a form that the dictionary lacks."""
    words = ["koira", "talo", "kirja", "ikkuna", "kissa", "metsä"]
    forms = ["koirasta", "taloissa", "kirjoja", "ikkunassa", "kissalla", "metsissä"]
    english = ["dog", "house", "book", "window", "cat", "forest"]
    texts = [" ".join(forms[i] for i in page) for page in THREES]
    assert linked_by(words, english, numbered(texts, "s", "fi")) == list(range(20))


def test_a_korean_dictionary_links_words_with_particles() -> None:
    """Each word has one of several particles, so that no whole word is in the dictionary."""
    words = ["고양이", "바나나", "컴퓨터", "사진", "학교", "피아노"]
    particles = ["는", "를", "에서", "의", "까지", "보다"]
    english = ["cat", "banana", "computer", "photo", "school", "piano"]
    texts = [" ".join(words[i] + particles[(i + n) % 6] for i in page) for n, page in enumerate(THREES)]
    assert linked_by(words, english, numbered(texts, "s", "ko")) == list(range(20))


def test_a_dictionarys_words_are_found_in_text_without_spaces() -> None:
    """Overlapping words are found, in any script; two-character words are bigrams, and Latin words are split off."""
    words = ("ภาษา", "ภาษาไทย", "ไทย", "abc", "日本", "コンピュータ", "コンピ")
    thai, japanese = (language(code).knowing(words) for code in ("th", "ja"))
    assert [w for w in thai.words("ภาษาไทยabc") if len(w) > 2] == ["ภาษา", "ภาษาไทย", "ไทย"]
    assert set(thai.words("ภาษาไทย")) >= set(language("th").words("ภาษาไทย"))
    assert [w for w in japanese.words("日本のコンピュータ abc") if len(w) > 2] == [
        "コンピュータ",
        "コンピ",
        "abc",
    ]
    assert japanese.translations("コンピュータ") == ["コンピュータ"]
    assert thai == language("th")
    assert language("fr").knowing(words).words("ภาษาไทย") == ["ภาษาไทย"]


@pytest.mark.parametrize("turned", [False, True])
def test_a_dictionary_links_text_without_spaces(turned: bool) -> None:
    """Three words per page, without spaces: no bigram is in the dictionary."""
    words = ["コンピュータ", "オレンジ", "カメラ", "テレビ", "ミシン", "ピアノ"]
    english = ["computer", "orange", "camera", "television", "machine", "piano"]
    chosen = list(combinations(range(6), 3))
    ours = numbered(["は".join(words[i] for i in page) for page in chosen], "s", "ja")
    theirs = numbered([" ".join(english[i] for i in page) for page in chosen], "t", "en")
    pairs = tuple(zip(words, english, strict=True))
    given = Dictionary(Path("words"), "tsv", tuple((b, a) for a, b in pairs) if turned else pairs)
    for source, target in ((ours, theirs), (theirs, ours)):
        found = link(Task(source, target, (given,)), "dictionary").candidates
        assert found.targets[:, 0].tolist() == list(range(20))


def test_stems_are_beginnings_and_untuned_languages_have_one() -> None:
    assert language("fr").terms("gouvernement") == ["gouvern"]
    assert language("de").terms("Verfassungen") == ["verfassu"]
    assert language("ru").terms("Правительство") == ["правит"]
    assert language("pt_BR").terms("governamental") == ["governa"]
    assert language("FR-ca") == language("fr")


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from(["en", "tr", "zh", "ja", "hi", "und"]))
def test_words_are_folded_and_never_single_characters(text: str, code: str) -> None:
    side = language(code)
    for word in side.words(text):
        assert len(word) > 1
        assert not any(c.isspace() for c in word)
        assert word[0].isalnum() or unicodedata.category(word[0]) == "No"


def test_dictionary_words_are_written_as_pages_write_them() -> None:
    assert language("zh").headwords("檔案") == ["档案", "文件"]
    assert language("fr").headwords("tout de suite") == []
    links = from_pairs([("檔案", "computer file"), ("ISI", "heat")], language("zh"), language("en")).links
    assert set(links) == {(w, e) for w in ("档案", "文件") for e in ("compute", "file")} | {("isi", "heat")}


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(["aa", "bb", "cc"])), max_size=5))
def test_counts(texts: list[list[str]]) -> None:
    terms = count_terms([" ".join(t) for t in texts], str.split)
    assert list(terms.vocabulary) == sorted({word for t in texts for word in t})
    slow = [[t.count(word) for word in terms.vocabulary] for t in texts]
    assert terms.counts.toarray().tolist() == slow
    assert terms.document_frequency.tolist() == [sum(map(bool, c)) for c in zip(*slow, strict=True)]


def write(path: Path, *records: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def test_the_language_comes_from_the_flag_the_metadata_or_the_name(tmp_path: Path) -> None:
    plain = write(tmp_path / "fr.jsonl", {"_id": "1", "text": "un"})
    marked = write(tmp_path / "pages.jsonl", {"_id": "1", "text": "un", "metadata": {"language": "de"}})
    folder = tmp_path / "ru"
    folder.mkdir()
    (folder / "a.txt").write_text("один", encoding="utf-8")
    unknown = write(tmp_path / "x.jsonl", {"_id": "1", "text": "un"})
    codes = [read_pages(p).language.code for p in (plain, marked, folder, unknown)]
    assert codes == ["fr", "de", "ru", "und"]
    assert read_pages(plain, "it").language.code == "it"


def test_unusable_records_and_repeated_ids_are_kept_aside(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", {"_id": "1", "text": "un"}, {"_id": "2", "text": ""}, {"_id": "3", "text": "x"}
    )
    found = read_pages(path)
    assert found.ids == ("1", "3")
    assert [bad.line for bad in found.skipped] == [2]
    repeated = read_pages(
        write(tmp_path / "b.jsonl", {"_id": "1", "text": "un"}, {"_id": "1", "text": "deux"})
    )
    assert (repeated.ids, repeated.texts) == (("1",), ("un",))
    assert [(bad.line, "duplicate id" in bad.reason) for bad in repeated.skipped] == [(2, True)]
    with pytest.raises(InputError, match="no text could be read"):
        read_pages(write(tmp_path / "c.jsonl", {"_id": "1"}))


def test_language_pairs() -> None:
    assert split_languages("fr-en") == ("fr", "en")
    for wrong in ("fr", "fr-", "a-b-c", "1-2", "spanish-english"):
        with pytest.raises(InputError, match="fr-en"):
            split_languages(wrong)


def test_rows_keep_the_vocabulary() -> None:
    terms = numbered(["aa bb", "bb cc", "cc"], "p").terms
    some = terms.rows([2, 0])
    assert some.vocabulary == terms.vocabulary
    assert some.document_frequency.tolist() == [1, 1, 1]
    assert pages({"x": "aa"}).position == {"x": 0}


def lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def texts_of(n: int) -> tuple[str, ...]:
    rng = np.random.default_rng(4)
    return tuple(
        "\n".join(" ".join(f"w{i}" for i in rng.integers(0, 50, 40)) for _ in range(3)) * (k % 3 != 0)
        for k in range(n)
    )


def test_processes_return_what_one_process_does_in_order() -> None:
    texts = tuple("x" * i for i in range(100))
    found = list(in_chunks(lengths, texts, many=1, jobs=2))
    assert [n for part in found for n in part] == list(range(100))


@pytest.mark.parametrize("size", [1, 7, 2000])
def test_terms_and_passages_do_not_depend_on_the_chunks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_of(30)
    whole = count_terms(texts, str.split)
    cut = passages_of(texts, str.split, whole)
    monkeypatch.setattr(chunks, "CHUNK", size)
    parts = count_terms(texts, str.split)
    assert parts.vocabulary == whole.vocabulary
    for row, text in enumerate(texts):
        begin, end = parts.counts.indptr[row : row + 2]
        terms = [parts.vocabulary[i] for i in parts.counts.indices[begin:end]]
        assert dict(zip(terms, parts.counts.data[begin:end].tolist(), strict=True)) == Counter(text.split())
        assert terms == sorted(terms)
    again = passages_of(texts, str.split, whole)
    assert np.array_equal(again.begin, cut.begin)
    assert np.array_equal(again.present.indices, cut.present.indices)
    assert np.array_equal(again.present.indptr, cut.present.indptr)
    assert cut.begin[0] == 0 and np.diff(cut.begin).min() >= 1  # an empty text has one empty passage
