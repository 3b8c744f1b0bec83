"""`linker bucc prepare`: dumps of two wikis end to end, names that match several pages, and mistakes."""

import bz2
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.support.wikis import Row, WikiPage, article, write_dump, write_langlinks, write_wikis
from linker.papers.bucc import prepare as bodies
from linker.papers.bucc.pairing import Linked, pair_pages
from linker.papers.bucc.prepare import Texts, prepare
from linker.papers.bucc.raw_pages import RawPages
from tests.helpers import linker, run_page, write_json_lines


def options(files: dict[str, tuple[Path, Path]]) -> list[str]:
    return [
        word
        for code, (dump, links) in files.items()
        for word in ("--dump", f"{code}={dump}", "--langlinks", f"{code}={links}")
    ]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def wikis(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    return write_wikis(tmp_path_factory.mktemp("wikis"), 200, length=1500)


def test_two_dumps_become_the_shared_task(wikis: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    done = linker("bucc", "prepare", *options(wikis), "--out", tmp_path / "data", "--jobs", "1", "--json")
    report = json.loads(done.stdout)
    assert report == json.loads((tmp_path / "data" / "prepare.json").read_text()) | {"left_out": []}
    read = {
        "pages": 360, "other_namespaces": 60, "redirects": 60, "unusable": 0, "articles": 240, "links": 220,
        "linked": 220,
    }  # fmt: skip
    assert report["read"] == {"de": read, "en": read}
    assert (report["linked_both_ways"], report["with_text"]) == (200, 200)
    assert report["train"] + report["test"] == report["kept"] >= 100
    keys = dict(line.split("\t") for line in lines(tmp_path / "data" / "key.tsv"))
    for half in ("train", "test"):
        links = [line.split() for line in lines(tmp_path / "data" / "qrels" / f"de.{half}.txt")]
        assert len(links) == report[half]
        for a, _, b, _ in links:  # page ids of the wikis: number 10n + 7 and 10n + 8
            assert int(keys[b]) == int(keys[a]) + 1
        pages = [json.loads(line) for line in lines(tmp_path / "data" / f"de.{half}.jsonl")]
        assert {page["_id"] for page in pages} == {a for a, *_ in links}
        for page in pages:
            assert not any(
                mark in page["text"]
                for mark in ("[[", "{{", "'''", "==", "<ref", "Datei:", "Kategorie:", "3.14")
            )
    assert [p.name for p in (tmp_path / "data").iterdir() if p.name.startswith(".")] == []


def test_the_command_of_the_page_works(tmp_path: Path) -> None:
    write_wikis(tmp_path, 40, length=600)
    printed = run_page("bucc.md", tmp_path, r"```shell\n(linker bucc prepare.*?)```", blocks=1)
    assert "linked both ways     40\n" in printed
    assert '"linked_both_ways": 40' in printed


def test_processes_and_parts_give_the_same(
    wikis: dict[str, tuple[Path, Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "TOGETHER", 20)
    german, english = (RawPages((dump,), (links,)) for dump, links in wikis.values())
    dump, links = wikis["de"]
    text = bz2.decompress(dump.read_bytes()).decode()
    middle, head = text.index("  <page>", len(text) // 2), text.index("  <page>")
    (tmp_path / "1.xml").write_text(text[:middle] + "</mediawiki>", encoding="utf-8")
    (tmp_path / "2.xml").write_text(text[:head] + text[middle:], encoding="utf-8")
    parts = RawPages((tmp_path / "1.xml", tmp_path / "2.xml"), (links,))
    prepare(german, english, tmp_path / "one", ("de", "en"))
    prepare(parts, english, tmp_path / "two", ("de", "en"), jobs=2)
    for name in ("key.tsv", "de.train.jsonl", "en.test.jsonl", "qrels/de.test.txt", "prepare.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def small(
    folder: Path, pages: dict[str, list[WikiPage]], rows: dict[str, list[Row]]
) -> dict[str, tuple[Path, Path]]:
    files = {code: (folder / f"{code}.xml", folder / f"{code}.sql") for code in ("de", "en")}
    for code, (dump, links) in files.items():
        write_dump(dump, code, pages[code])
        write_langlinks(links, rows[code])
    return files


def test_redirects_numbers_and_quotes_in_titles(tmp_path: Path) -> None:
    titles = {
        "de": ["Köln", "1984", 'L\'"Été" \\ x', "iPod", "Alone"],
        "en": ["Cologne", "1984 (novel)", "L'Été & x", "IPod", "Only"],
    }
    pages = {
        code: [WikiPage(10 + i, title, f"Start. Text {title} {i}.") for i, title in enumerate(names)]
        for code, names in titles.items()
    }
    pages["en"] += [
        WikiPage(1984, "Page nineteen eighty-four", "Start. Text."),
        WikiPage(50, "Koln", "", redirect="Cologne"),
    ]
    rows: dict[str, list[Row]] = {
        "de": [
            (10, "en", "Koln"), (11, "en", "1984_(novel)"), (12, "en", "L'Été & x"), (13, "en", "iPod"),
            (14, "en", "Gone"),
        ],
        "en": [
            (10, "de", "Köln"), (11, "de", "1984"), (12, "de", titles["de"][2]), (13, "de", "IPod"),
            (1984, "de", "10"),
        ],
    }  # fmt: skip
    rows["en"].append((14, "de", "Köln#Section"))
    pages["de"][3] = WikiPage(13, "IPod", "Start. Text 3.")
    files = small(tmp_path, pages, rows)
    german, english = (RawPages((dump,), (links,)) for dump, links in files.values())
    report = prepare(german, english, tmp_path / "out", ("de", "en"))
    assert report.linked_both_ways == 4
    assert report.unresolved == 3  # Gone, 10 (an id, which is not a title) and Köln#Section
    assert report.ambiguous_names == 0
    assert report.read["en"]["redirects"] == 1


def test_links_in_the_markup_of_dumps(tmp_path: Path) -> None:
    pages = {
        "de": [
            WikiPage(1, "Eins", "Start. Text.\n[[en:One]]\n[[fr:Un]]"),
            WikiPage(2, "Zwei", "Start. Text.[[en:Two]]"),
        ],
        "en": [WikiPage(1, "One", "Start. Text.\n[[de:Eins]]"), WikiPage(2, "Two", "Start. Text.")],
    }
    for code, written in pages.items():
        write_dump(tmp_path / f"{code}.xml", code, written)
    done = linker(
        "bucc",
        "prepare",
        tmp_path / "de.xml",
        tmp_path / "en.xml",
        "--languages",
        "de-en",
        "--out",
        tmp_path / "o",
    )
    assert "linked both ways     1\n" in done.stdout


def linked(pages: dict[str, tuple[str, str]], by_id: bool = True) -> Linked:
    """Make pages from id → (title, link)."""
    titles = {page: title for page, (title, _) in pages.items()}
    return Linked(titles, {page: (link,) for page, (_, link) in pages.items()}, by_id=by_id)


def test_titles_and_ids_that_are_alike_lose_no_pair_that_can_be_told_apart() -> None:
    """Page E1 has the title 101, which is the id of page "101": the backlinks distinguish them."""
    source = linked({"f1": ("Un", "101"), "f2": ("Deux", "Two")})
    target = linked({"E1": ("101", "Un"), "101": ("Two", "Deux")})
    pairs = pair_pages(source, target)
    assert set(pairs.pairs) == {("f1", "E1"), ("f2", "101")}
    assert pairs.ambiguous_names == ("101",)
    assert not pairs.left_out
    source = linked({"f1": ("Un", "101")})
    target = linked({"E1": ("101", "Un"), "101": ("Two", "Un")})
    assert pair_pages(source, target).pairs == (("f1", "E1"),)
    source = linked({"f1": ("Un", "One"), "f2": ("Deux", "Two")})
    target = linked({"e1": ("One", "Un"), "e2": ("One", "Un"), "e3": ("Two", "f2")})
    pairs = pair_pages(source, target)
    assert pairs.pairs == (("f2", "e3"),)
    assert pairs.left_out == (("f1", "e1"), ("f1", "e2"))


def test_ambiguous_pairs_are_reported(tmp_path: Path) -> None:
    def write(code: str, pages: list[dict[str, Any]]) -> Path:
        path = tmp_path / f"{code}.jsonl"
        write_json_lines(path, pages)
        return path

    fr = write(
        "fr",
        [
            {"_id": f"f{i}", "title": f"F{i}", "text": "Start. Text.", "langlinks": {"en": f"E{i}"}}
            for i in (1, 2)
        ],
    )
    en = write(
        "en",
        [
            {
                "_id": f"e{i}", "title": f"E{min(i, 2)}", "text": "Start. Text.",
                "langlinks": {"fr": f"F{min(i, 2)}"},
            }
            for i in (1, 2, 3)
        ],
    )  # fmt: skip
    done = linker("bucc", "prepare", fr, en, "--languages", "fr-en", "--out", tmp_path / "o")
    assert "ambiguous, left out  2: f2 – e2, f2 – e3" in done.stdout
    assert "2 pairs are left out" in done.stderr
    report = json.loads((tmp_path / "o" / "prepare.json").read_text())
    assert (report["ambiguous_names"], report["ambiguous_pairs"]) == (1, 2)
    assert report["left_out"] == [["f2", "e2"], ["f2", "e3"]]


def test_the_pairing_is_that_of_a_slow_oracle() -> None:
    """With unique titles and no ids among the links, a pair is two pages that name each other."""
    rng = random.Random(0)
    for _ in range(50):
        n = rng.randrange(1, 12)
        source = linked({f"s{i}": (f"S{i}", f"T{rng.randrange(n)}") for i in range(n)})
        target = linked({f"t{i}": (f"T{i}", f"S{rng.randrange(n)}") for i in range(n)})
        expected = {
            (s, t)
            for s in source.titles
            for t in target.titles
            if source.links[s] == (target.titles[t],) and target.links[t] == (source.titles[s],)
        }
        assert set(pair_pages(source, target).pairs) == expected


def fails(*arguments: str | Path) -> str:
    done: subprocess.CompletedProcess[str] = linker("bucc", "prepare", *arguments, check=1)
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_errors_name_the_remedy(wikis: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "o")
    de, en = (str(files[0]) for files in wikis.values())
    assert "--dump fr=FILE --dump en=FILE" in fails(*out)
    assert "--dump fr=FILE --dump en=FILE" in fails(*out, "--dump", f"de={de}")
    assert "write CODE=FILE" in fails(*out, "--dump", de, "--dump", f"en={en}")
    assert "one --dump for each language" in fails(*out, de, "--dump", f"de={de}", "--dump", f"en={en}")
    both = (*out, "--dump", f"de={de}", "--dump", f"en={en}")
    assert "they have to agree" in fails(*both, "--languages", "fr-en")
    assert "none of de, en" in fails(*both, "--langlinks", f"fr={de}")
    assert "does not hold the table langlinks" in fails(
        *both, "--langlinks", f"de={de}", "--langlinks", f"en={en}"
    )
    assert "pass --links and --back-links, or --langlinks" in fails(*both)
    cut = tmp_path / "cut.xml.bz2"
    cut.write_bytes(Path(de).read_bytes()[:-500])
    assert "is damaged or truncated" in fails(*out, "--dump", f"de={cut}", "--dump", f"en={en}")
    pages = tmp_path / "de.jsonl"
    pages.write_text('{"_id": "1", "text": "Start. Text."}\n')
    tables = [f"{code}={files[1]}" for code, files in wikis.items()]
    assert "not an XML dump" in fails(
        *out, pages, en, "--languages", "de-en", "--langlinks", tables[0], "--langlinks", tables[1]
    )
    assert not (tmp_path / "o" / "prepare.json").exists()


def test_texts_wait_in_a_file(tmp_path: Path) -> None:
    texts = Texts(tmp_path)
    words = ["", "é中", "x" * 1000, "\ud800"]
    assert [texts.add(word) for word in words] == [0, 1, 2, 3]
    assert texts[2] == words[2]
    assert texts.add("y") == 4
    assert [texts[i] for i in range(5)] == [*words, "y"]
    assert [texts.length(i) for i in range(5)] == [0, 2, 1000, 1, 1]
    assert not list(tmp_path.iterdir())
    texts.close()


def test_the_articles_of_the_generator_are_as_long_as_asked() -> None:
    assert 1500 <= len(article("de", 3, 1500)) < 2200
