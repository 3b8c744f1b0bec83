"""Reading XML dumps: against a full parse, compressed in every way, damaged, and with several revisions."""

import bz2
import gzip
import lzma
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.support.wikis import WikiPage as Written
from benchmarks.support.wikis import export, write_wikis
from linker.base.errors import InputError
from linker.papers.bucc import compressed
from linker.papers.bucc.dumps import DumpCounts, Site, WikiPage, is_dump, read_dump

PAGES = [
    Written(1, "Köln & Bonn", "a <b>&amp;</b> 'c' \"d\" \t x\n\ny"),
    Written(2, "Vorlage:X", "{{y}}", 10),
    Written(3, "Cologne", "#WEITERLEITUNG [[Köln & Bonn]]", redirect="Köln & Bonn"),
    Written(4, "Leer", ""),
]


def read(path: Path) -> tuple[list[WikiPage], DumpCounts, Site]:
    counts, site = DumpCounts(), Site()
    return list(read_dump(path, counts, site)), counts, site


def parsed(data: bytes) -> list[tuple[str, str, str | None, str]]:
    """Parse a dump as a whole: id, title, redirect and text of the articles and redirects."""
    root = ET.fromstring(data)
    ns = root.tag[: root.tag.index("}") + 1]
    found = []
    for page in root.iter(f"{ns}page"):
        redirect = page.find(f"{ns}redirect")
        texts = [revision.findtext(f"{ns}text") or "" for revision in page.iter(f"{ns}revision")]
        if page.findtext(f"{ns}ns") == "0":
            target = redirect.get("title") if redirect is not None else None
            text = "" if redirect is not None else texts[-1]
            found.append((page.findtext(f"{ns}id") or "", page.findtext(f"{ns}title") or "", target, text))
    return found


def test_the_full_parse_agrees(tmp_path: Path) -> None:
    for path, _ in write_wikis(tmp_path, 60, length=800).values():
        pages, counts, site = read(path)
        expected = parsed(bz2.decompress(path.read_bytes()))
        assert [(p.id, p.title, p.redirect, p.text) for p in pages] == expected
        assert counts == DumpCounts(60 + 6 * 8, other_namespaces=6 * 3, redirects=6 * 3)
        assert site.categories >= {"kategorie" if path.name.startswith("de") else "category"}
        assert "datei" in site.media or site.language == "en"


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"),
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(texts=st.lists(TEXT, max_size=5), block=st.integers(1, 300))
def test_texts_come_back_however_the_file_is_cut(
    tmp_path: Path, texts: list[str], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", block)
    path = tmp_path / "x.xml"
    path.write_text(
        "".join(export("de", [Written(i, f"T{i}", t) for i, t in enumerate(texts)])), encoding="utf-8"
    )
    assert [page.text for page in read(path)[0]] == texts


def test_every_compression_is_known_by_its_content(tmp_path: Path) -> None:
    data = "".join(export("de", PAGES)).encode()
    half = len(data) // 2
    streams = bz2.compress(data[:half]) + bz2.compress(data[half:])
    for packed in (data, gzip.compress(data), bz2.compress(data), streams, lzma.compress(data)):
        path = tmp_path / "dump"
        path.write_bytes(packed)
        assert is_dump(path)
        pages, counts, _ = read(path)
        assert [(p.id, p.title, p.redirect, p.text) for p in pages] == parsed(data)
        assert counts == DumpCounts(4, 1, 1)


def test_text_that_is_not_wanted_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text("".join(export("de", PAGES)), encoding="utf-8")
    counts, asked = DumpCounts(), []

    def wanted(page: WikiPage) -> bool:
        asked.append((page.id, page.title, page.text))
        return page.id == "4"

    pages = list(read_dump(path, counts, Site(), wanted))
    assert asked == [("1", "Köln & Bonn", ""), ("4", "Leer", "")]
    assert [page.id for page in pages] == ["3", "4"]
    assert counts.pages == 4


def test_of_several_revisions_the_last_counts_and_a_page_without_id_is_counted(tmp_path: Path) -> None:
    text = "".join(export("de", PAGES[:1]))
    begin, end = text.index("    <revision>"), text.index("  </page>")
    revision = text[begin:end]
    path = tmp_path / "x.xml"
    path.write_text(
        text[:end] + revision.replace("<b>", "").replace("a ", "new ") + text[end:], encoding="utf-8"
    )
    (page,) = read(path)[0]
    assert page.text.startswith("new ")
    assert (page.id, page.title) == ("1", "Köln & Bonn")
    path = tmp_path / "x.xml"
    path.write_text("".join(export("de", PAGES)).replace("    <id>4</id>\n", ""), encoding="utf-8")
    pages, counts, _ = read(path)
    assert [page.id for page in pages] == ["1", "3"]
    assert counts.unusable == 1


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress, bytes])
@pytest.mark.parametrize("keep", [0.3, 0.7, 0.97])
def test_a_cut_dump_is_an_error(tmp_path: Path, pack: type[bytes], keep: float) -> None:
    data = pack("".join(export("de", PAGES * 50)).encode())
    path = tmp_path / "x"
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(InputError, match=r"x is damaged or truncated.*download it again"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><mediawiki/></html>", "its first element is <html>"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><mediawiki>&b;</mediawiki>', "document type"),
        (b"<mediawiki>" + b"\xff</mediawiki>", "damaged"),
        (b"\x28\xb5\x2f\xfdxx", "zstd -d"),
        (b"7z\xbc\xaf\x27\x1c", "7z x"),
        (b"<mediawiki></mediawiki><mediawiki></mediawiki>", "damaged"),
    ],
)
def test_other_content_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)
