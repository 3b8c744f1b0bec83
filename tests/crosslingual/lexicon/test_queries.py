"""Searching an index in another language with words learned from links."""

import json
import shutil
import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linker
from indexes.interface import DamagedError, Document
from linker.base.errors import InputError
from linker.crosslingual.lexicon.queries import query_lexicon
from linker.crosslingual.sides import Side
from linker.engine import building
from linker.engine.engine import Engine
from linker.engine.lexicons import QueryLexicon, Translated, translate_queries
from tests.crosslingual.synthetic import Twin, twin, word
from tests.helpers import linker as command
from tests.helpers import make_engine

TWIN = twin(60, 10, vocabulary=60, length=25)


def ask(numbers: tuple[int, ...], language: str) -> str:
    return " ".join(word(n, language) for n in numbers)


def best(numbers: tuple[int, ...], engine: Engine, language: str) -> list[str]:
    return list(engine.search(ask(numbers, language), 5).hits[0].ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sides of TWIN (one as an index), 60 links, and a dictionary of ten words."""
    folder = tmp_path_factory.mktemp("queries")
    write(folder, TWIN)
    command("index", "build", folder / "en.jsonl", "--out", folder / "en.index")
    command("index", "build", folder / "fr.jsonl", "--out", folder / "fr.index", "--language", "french")
    return folder


def write(folder: Path, pages: Twin) -> None:
    for name, side in (("fr", pages.source), ("en", pages.target)):
        texts = (*side.texts[:-1], side.texts[-1] + " " + "x" * 300)  # no word
        records = [{"id": i, "text": t} for i, t in zip(side.ids, texts, strict=True)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    links = [f"{a} 0 {b} 1\n" for a, b in list(pages.gold().items())[:40]]
    (folder / "links.qrels").write_text("".join(links))
    pairs = [*pages.dictionary[:10], ("neuf", word(3, "target")), ("onze", word(8, "target"))]
    (folder / "words.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))


@pytest.mark.parametrize(("index", "other"), [("en.index", "source"), ("fr.index", "target")])
def test_a_query_finds_what_its_translation_finds(
    index: str, other: str, folder: Path, tmp_path: Path
) -> None:
    own = "target" if other == "source" else "source"
    directory = tmp_path / index
    shutil.copytree(folder / index, directory)
    sides = (folder / "fr.jsonl", directory) if other == "source" else (directory, folder / "en.jsonl")
    numbers = (3, 5, 8)
    with Engine(directory) as engine:
        assert best(numbers, engine, other) == []
        linker.link(
            *sides, train=folder / "links.qrels", dictionary=[folder / "words.tsv"], languages="fr-en",
            out=tmp_path / "links.run", save_model=directory, self_train=False,
        )  # fmt: skip
        assert len(best(numbers, engine, own)) == 5
        assert best(numbers, engine, other) == best(numbers, engine, own)
        if other == "source":  # dictionary words that are on no page
            found = engine.search(f"neuf {ask((5,), other)} onze", 5).hits[0]
            assert list(found.ids) == best(numbers, engine, own)
        answer = engine.search([ask(numbers, other), ask((4,), own), "neither"])
        assert len(answer.notes) == 1 and "1 of 3 texts are in" in answer.notes[0]
    command("index", "verify", directory)
    said = command("search", directory, ask(numbers, other), "--json").stdout
    assert ask(numbers, own) in json.loads(said)["notes"][0]


def test_a_lexicon_replaces_that_of_its_language_only(folder: Path, tmp_path: Path) -> None:
    directory = tmp_path / "en.index"
    shutil.copytree(folder / "en.index", directory)
    with Engine(directory) as engine:
        for code, translation in (("fr", "one"), ("de", "two"), ("fr", "three")):
            engine.store_lexicon(QueryLexicon(code, "none", {code: translation}, {code: 1.0}))
        assert [(one.code, dict(one.words)) for one in engine.lexicons] == [
            ("de", {"de": "two"}), ("fr", {"fr": "three"}),
        ]  # fmt: skip
    (path,) = directory.glob("lexicon/*/fr.json")
    path.write_bytes(path.read_bytes().replace(b"three", b"thre\n"))
    with pytest.raises(DamagedError, match=r"fr\.json"):
        Engine(directory)
    with pytest.raises(InputError, match="not a lexicon of this version"):
        QueryLexicon.read(path)


def test_the_language_of_most_of_the_words_is_taken_and_both_are_searched_where_it_is_not_sure() -> None:
    german = QueryLexicon(
        "de", "german", {"haus": "house", "krieg": "war", "linux": "Linux"},
        {"haus": 6.0, "die": 1.0, "of": -9.0},
    )  # fmt: skip
    french = QueryLexicon("fr", "french", {"maison": "house"}, {"maison": 6.0, "die": 1.5, "of": -8.0}, True)
    texts = [
        "Das Haus in 1984", "maison", "of die Krieg", "unknown", "", "Linux die Krieg", "Linux Haus", "linux",
    ]  # fmt: skip
    read, notes = translate_queries(texts, [german])
    translated = ["house 1984", *texts[1:5], "Linux die Krieg war", "Linux house", "linux"]
    assert read == translated
    assert notes == (
        "2 of 8 texts are in German: searched by the index's lexicon",
        "1 of 8 texts may be in German: also searched by the index's lexicon",
    )
    read, _ = translate_queries(texts[:2], [german, french])
    assert [t.asked for t in read if isinstance(t, Translated)] == ["house 1984", "maison"]
    read, (note,) = translate_queries(["la maison die"], [replace(french, leaning={"die": -1.0})])
    assert read == ["la maison die house"] and read[0].asked == "la maison die"  # type: ignore[attr-defined]
    assert note == "the text may be in French: also searched by the index's lexicon as “house”"
    assert translate_queries(texts, []) == (texts, ())


def test_the_encoder_reads_what_finds_more(tmp_path: Path) -> None:
    """A bag-of-words vector knows only the index's words, so it is given the translation."""
    sides = [
        Side((tmp_path / name,), {i: Document(i, t) for i, t in zip(of.ids, of.texts, strict=True)}, code)
        for name, of, code in (("fr", TWIN.source, "fr"), ("index", TWIN.target, "en"))
    ]
    with make_engine(tmp_path / "index", sides[1].documents.values()) as engine:
        lexicon = query_lexicon(sides[0], replace(sides[1], engine=engine), [*TWIN.gold().items()])
        assert not lexicon.reads
        asked = ask((3, 5, 8), "source")
        for one, read in ((lexicon, lexicon.translated(asked)), (replace(lexicon, reads=True), asked)):
            engine.store_lexicon(one)
            found = engine.search(asked, 5, mode="dense").hits[0]
            assert found.ids == engine.search(vectors=engine.embed([read]), k=5).hits[0].ids


def test_an_unknown_form_is_translated_as_the_shortest_that_begins_alike() -> None:
    words = {"kullan": "use", "kullanıcı": "user", "kullanıcılar": "users", "dosya": "file", "dos": "friend"}
    lexicon = QueryLexicon("tr", "none", words, {})
    for term, found in (
        ("kullanıcıların", "users"), ("kullanıcısı", "user"), ("kullanmak", "use"), ("kullanılabilirlik", None),
        ("dosyalar", "file"), ("dosyalarındakiler", None), ("dosta", None), ("kullan", "use"),
    ):  # fmt: skip
        assert lexicon.word(term) == found


def test_links_choose_among_the_translations_of_a_dictionary(tmp_path: Path) -> None:
    """A translation that only links suggest is for words that the dictionary lacks."""
    foreign, own = (
        Side((tmp_path / name,), {i: Document(i, t) for i, t in zip(of.ids, of.texts, strict=True)}, code)
        for name, of, code in (("fr", TWIN.source, "fr"), ("index", TWIN.target, "en"))
    )
    building.create(tmp_path / "index")
    with Engine(tmp_path / "index") as engine:
        engine.add(own.documents.values())
        three, five, eight = (word(n, "source") for n in (3, 5, 8))
        pairs = [(three, word(7, "target")), (five, word(9, "target")), (five, word(5, "target"))]
        lexicon = query_lexicon(foreign, replace(own, engine=engine), [*TWIN.gold().items()], pairs)
    assert lexicon.translated(f"{three} {five} {eight}") == ask((7, 5, 8), "target")


def test_an_index_of_pairs_of_characters_is_searched_by_words_of_links_and_dictionaries(
    tmp_path: Path,
) -> None:
    """No word of a Chinese text is a term of its index, so that nearly nothing was translated."""
    chinese = ["文件", "系统", "网络", "图像", "声音", "打印", "密码", "时钟"]
    english = ["file", "system", "network", "image", "sound", "printer", "password", "clock"]
    chosen = list(combinations(range(8), 3))
    foreign, own = (
        Side((tmp_path / code,), {f"{code}{n}": Document(f"{code}{n}", t) for n, t in enumerate(texts)}, code)
        for code, texts in (
            ("en", [" ".join(english[i] for i in page) for page in chosen]),
            ("zh", ["的".join(chinese[i] for i in page) for page in chosen]),
        )
    )
    building.create(tmp_path / "zh", language="chinese")
    with Engine(tmp_path / "zh") as engine:
        engine.add(own.documents.values())
        links = [*zip(foreign.documents, own.documents, strict=True)][:40]
        for pairs, some in (((), links), ([*zip(english, chinese, strict=True)], links[:1])):
            lexicon = query_lexicon(foreign, replace(own, engine=engine), some, pairs)
            assert lexicon.translated("the password of a printer").endswith("密码 打印")


def test_what_teaches_nothing_is_refused(folder: Path, tmp_path: Path) -> None:
    directory = tmp_path / "en.index"
    shutil.copytree(folder / "en.index", directory)
    out = tmp_path / "links.run"
    with pytest.raises(InputError, match="not one of the two"):
        linker.link(
            folder / "fr.jsonl", folder / "en.jsonl", train=folder / "links.qrels", out=out, save_model=directory,
            languages="fr-en",
        )  # fmt: skip
    with pytest.raises(InputError, match="in the same language"):
        linker.link(
            folder / "en.jsonl", directory, languages="en-en", out=out, save_model=directory, self_train=False
        )


NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@settings(max_examples=50)
@given(st.dictionaries(NAME, NAME, max_size=4), st.dictionaries(NAME, st.floats(-100, 100), max_size=4))
def test_a_lexicon_comes_back_and_nothing_else(words: dict[str, str], leaning: dict[str, float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = QueryLexicon("fr", "french", words, leaning, True)
        before.write(Path(folder))
        path = Path(folder) / "fr.json"
        after = QueryLexicon.read(path)
        assert (after.words, after.leaning, after.reads) == (words, leaning, True)
        content = path.read_bytes()
        for wrong in (
            content[:-1],
            content.replace(b"french", b"frensh"),
            content.replace(b"true", b"1"),
            b"[]",
        ):
            path.write_bytes(wrong)
            with pytest.raises(InputError, match="not a lexicon of this version"):
                QueryLexicon.read(path)
