"""`linker align`: its output formats, and its errors."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from linker import Alignment, align
from linker.base.errors import InputError
from tests.helpers import linker

etree = pytest.importorskip("lxml.etree")

FRENCH = (
    "Le volcan de Lieu1 date de 1900.\nIl est <haut> & beau.\n"
    "Cette phrase manque sur la page anglaise, dont personne ne connaît le traducteur, et rien ne la remplace.\n"
    "La ville compte 4321 maisons."
)
ENGLISH = "The volcano of Lieu1 dates from 1900.\nIt is <tall> & beautiful.\nThe city counts 4321 houses."
WORDS = (
    "volcan\tvolcano\nphrase\tsentence\ndate\tdates\nhaut\ttall\nbeau\tbeautiful\nville\tcity\nmaisons\thouses\n"
    "compte\tcounts\nmanque\tmissing\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two linked pages, one in neither collection, and a page whose text a spreadsheet would evaluate."""
    write(tmp_path / "fr.jsonl", {"fr1": FRENCH, "f2": "=1+1\x1b voyage en 1999"})
    write(tmp_path / "en.jsonl", {"e1": ENGLISH, "e2": "=1+1\x1b journey in 1999"})
    (tmp_path / "words.tsv").write_text(WORDS, encoding="utf-8")
    lines = ("fr1 X e1 1 0.95 r", "fr1 X e2 2 0.5 r", "f2 X e2 1 0.6 r", "f3 X e1 1 0.9 r")
    (tmp_path / "links.run").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def write(path: Path, texts: dict[str, str]) -> None:
    path.write_text("".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in texts.items()))


def aligned(folder: Path, name: str, **options: Any) -> Alignment:
    inputs = (folder / "links.run", folder / "fr.jsonl", folder / "en.jsonl", folder / name)
    return align(*inputs, dictionary=[folder / "words.tsv"], **options)


def test_a_translation_memory_is_valid_and_keeps_the_text(folder: Path) -> None:
    result = aligned(folder, "out.tmx")
    assert (result.pages, result.passages, result.below) == (2, 4, 0)
    assert (result.source_skipped, result.target_skipped) == (1, 0)
    memory = etree.parse(folder / "out.tmx")
    dtd = etree.DTD(str(Path(__file__).with_name("tmx14.dtd")))
    assert dtd.validate(memory), dtd.error_log
    header = memory.find("header")
    assert (header.get("srclang"), header.get("segtype"), header.get("creationtool")) == (
        "fr",
        "sentence",
        "linker",
    )
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    pairs = [
        {tuv.get(language): tuv.findtext("seg") for tuv in unit.iter("tuv")} for unit in memory.iter("tu")
    ]
    assert pairs[:3] == [
        {"fr": "Le volcan de Lieu1 date de 1900.", "en": "The volcano of Lieu1 dates from 1900."},
        {"fr": "Il est <haut> & beau.", "en": "It is <tall> & beautiful."},
        {"fr": "La ville compte 4321 maisons.", "en": "The city counts 4321 houses."},
    ]
    assert "\ufffd" in pairs[3]["fr"]
    properties = {prop.get("type"): prop.text for prop in memory.find(".//tu").iter("prop")}
    assert properties.pop("x-score") > "0.5" and "0.5" < properties.pop("x-probability") < "1"
    assert properties == {"x-source-page": "fr1", "x-target-page": "e1", "x-page-score": "0.95"}


@pytest.mark.parametrize(
    ("about", "named"), [({"languages": ["pl", "und"]}, ["pl", "en"]), ({}, ["fr", "en"]), ([], ["fr", "en"])]
)
def test_the_languages_are_those_of_the_run(folder: Path, about: object, named: list[str]) -> None:
    (folder / "links.run.json").write_text(json.dumps(about), encoding="utf-8")
    aligned(folder, "out.tmx", unit="line")
    units = etree.parse(folder / "out.tmx").iter("tuv")
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    assert [unit.get(language) for unit in units][:2] == named


def test_a_language_that_nothing_names_is_detected(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "fr.jsonl").rename(folder / "pages.jsonl")
    inputs = (folder / "links.run", folder / "pages.jsonl", folder / "en.jsonl", folder / "out.tmx")
    align(*inputs, unit="line")
    assert etree.parse(inputs[-1]).find("header").get("srclang") == "fr" and "unknown" not in caplog.text
    write(folder / "pages.jsonl", {"fr1": "xq 7"})
    align(*inputs, unit="line")
    assert etree.parse(inputs[-1]).find("header").get("srclang") == "und" and "unknown" in caplog.text


def test_collections_in_the_wrong_order_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="from the second collection to the first"):
        align(folder / "links.run", folder / "en.jsonl", folder / "fr.jsonl", folder / "out.tmx")


def test_a_table_has_cells_that_no_spreadsheet_computes(folder: Path) -> None:
    aligned(folder, "out.tsv", unit="line")
    rows = rows_of(folder / "out.tsv")
    assert rows[0]["source"] == "Le volcan de Lieu1 date de 1900."
    assert (rows[-1]["source_page"], rows[-1]["target_page"], rows[-1]["page_score"]) == ("f2", "e2", "0.6")
    assert rows[-1]["source"].startswith("'=1+1") and rows[-1]["target"].startswith("'=1+1")


def test_a_pair_is_less_probable_if_another_line_fits_as_well(folder: Path) -> None:
    aligned(folder, "out.tsv", unit="line")
    before = rows_of(folder / "out.tsv")[0]
    rest = "\nPersonne ne traduit cette ligne.\nNi celle-ci, qui parle du vent.\n"
    again = FRENCH.partition("\n")[0] + rest + FRENCH
    write(folder / "fr.jsonl", {"fr1": again, "f2": "=1+1\x1b voyage en 1999"})
    aligned(folder, "out.tsv", unit="line")
    after = rows_of(folder / "out.tsv")[0]
    assert (before["source"], before["target"]) == (after["source"], after["target"])
    assert 0.1 < float(after["probability"]) < 0.6 < 0.9 < float(before["probability"]) < 1


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_linked_pages_teach_words_where_no_dictionary_is_given(tmp_path: Path) -> None:
    """Sixty pages of the same invented words: by themselves, their lines share nothing with their translations."""
    rng = random.Random(1)
    words = [(f"ab{n}x", f"qo{n}y") for n in range(60)]
    pages, gold = [], []
    for page in range(60):
        lines = [rng.sample(words, 5) for _ in range(6)]
        pages.append([" ".join(a for a, _ in line) for line in lines])
        gold.append([" ".join(b for _, b in line) for k, line in enumerate(lines) if k != page % 6])
    write(tmp_path / "fr.jsonl", {f"f{n}": "\n".join(page) for n, page in enumerate(pages)})
    write(tmp_path / "en.jsonl", {f"e{n}": "\n".join(page) for n, page in enumerate(gold)})
    (tmp_path / "links.run").write_text("".join(f"f{n} X e{n} 1 1.0 r\n" for n in range(60)))
    inputs = [tmp_path / name for name in ("links.run", "fr.jsonl", "en.jsonl", "out.tsv")]
    align(*inputs, languages="fr-en", unit="line")
    with inputs[-1].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    translated = dict(words)
    right = sum(" ".join(translated[w] for w in row["source"].split()) == row["target"] for row in rows)
    assert right >= 0.85 * 60 * 5  # 266 are; without learning from the pages, by lengths alone, few would be
    assert right >= 0.85 * len(rows)


def test_pages_and_passages_below_the_least_scores_are_left_out_and_counted(folder: Path) -> None:
    assert aligned(folder, "out.tsv", min_probability=0.7).pages == 1
    strict = aligned(folder, "out.tsv", min_score=0.999)
    assert strict.below > 0
    assert strict.passages + strict.below == 4


def test_links_of_other_pages_are_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    aligned(folder, "out.tsv")
    assert "1 links are not between these pages; the first: f3 e1" in caplog.text
    (folder / "links.run").write_text("a X b 1 1.0 r\n")
    with pytest.raises(InputError, match="no link between these pages"):
        aligned(folder, "out.tsv")


def test_a_dictionary_the_wrong_way_round_is_turned(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    aligned(folder, "right.tsv", unit="line")
    swapped = ["\t".join(reversed(line.split("\t"))) for line in WORDS.splitlines()]
    (folder / "words.tsv").write_text("\n".join(swapped) + "\n", encoding="utf-8")
    aligned(folder, "turned.tsv", unit="line")
    assert "it is reversed" in caplog.text
    assert (folder / "turned.tsv").read_bytes() == (folder / "right.tsv").read_bytes()


def test_what_cannot_be_done_is_said_and_writes_nothing(folder: Path) -> None:
    with pytest.raises(InputError, match=r"must end in .tmx .* or .tsv"):
        aligned(folder, "out.xml")
    with pytest.raises(InputError, match="either `encoder` or `dictionary`"):
        aligned(folder, "out.tmx", encoder="usem3")
    assert not list(folder.glob("out*")) and not list(folder.glob(".out*"))


def test_the_command_counts_and_prints_json(folder: Path) -> None:
    inputs = (folder / "links.run", folder / "fr.jsonl", folder / "en.jsonl")
    done = linker("align", *inputs, "--out", folder / "out.tmx", "--unit", "line", "--json")
    counts = json.loads(done.stdout)
    assert counts["unit"] == "line" and counts["pages"] == 2
    assert counts["passages"] + counts["source_skipped"] >= 4
    assert "left out" in done.stderr
