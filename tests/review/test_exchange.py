"""Judgements round-trip through every format; no cell becomes a formula; invalid entries are reported."""

import csv
import dataclasses
import itertools
import json
import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.interface import Document
from linker.base.errors import InputError
from linker.evaluation import read_qrels, read_run
from linker.review.exporting import export
from linker.review.exporting import rows as cells
from linker.review.importing import ImportReport, import_judgements
from linker.review.interface import VERDICTS, Judgement, Seed
from linker.review.ledger import Ledger
from tests.review.papers import Corpus

TIME = "2026-01-02T03:04:05.678+00:00"
LOSSLESS = (".csv", ".xlsx", ".jsonl", ".ris")


CALL = "=cmd|' /C calc'!A0"
POSTS = Corpus(
    {
        d.id: d
        for d in (
            Document("d1", CALL, "T", {"url": "https://x.y/1", "likes": 3, "text": "own", "tags": ["a"]}),
            Document("d2", "second\r\nline; \"quoted\"", "", {"lang": "de", "likes": 1234567890123456789, "ok": True}),
        )
    }
)  # fmt: skip
SEEDS = [Seed("s1", "Heavy rain\nfloods", "Floods", {"section": "world", "likes": "x"}), Seed("s2", "=1+1")]
JUDGEMENTS = [
    Judgement("s1", "d1", "relevant", "ana", "-note", ("one", "two"), 1.5, 0.25, "abc", "audit", TIME),
    Judgement("s1", "d2", "not", "ana", time=TIME),
    Judgement("s2", "gone", "maybe", "ben", "a;b", ("x; y",), time=TIME),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "review.sqlite")
    made.put_seeds(SEEDS)
    made.add_all(JUDGEMENTS)
    return made


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a table as a spreadsheet does."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_table_holds_everything(tmp_path: Path, ledger: Ledger, suffix: str) -> None:
    report = export(ledger, POSTS, tmp_path / f"x{suffix}")
    assert dataclasses.astuple(report)[1:] == (3, 1, 0, 0, "judgements")
    first, second, third = rows_of(report.path)
    assert list(first) == [
        "seed", "id", "verdict", "reviewer", "time", "note", "tags", "score", "probability", "phase", "model",
        "seed_title", "seed_text", "title", "text", "passage", "offset", "seed_section", "seed_likes",
        "url", "likes", "metadata.text", "metadata.tags", "lang", "ok",
    ]  # fmt: skip
    guard = "'" if suffix == ".csv" else ""
    assert first["text"] == f"{guard}=cmd|' /C calc'!A0"
    assert first["note"] == f"{guard}-note"
    assert (first["seed_title"], first["seed_text"]) == ("Floods", "Heavy rain\nfloods")
    assert (first["tags"], first["metadata.tags"], first["metadata.text"]) == ("one; two", '["a"]', "own")
    assert (str(first["score"]), str(first["likes"]), first["seed_section"]) == ("1.5", "3", "world")
    assert (second["passage"], int(second["offset"])) == ("second", 0)
    assert not third["passage"] and third["offset"] in (None, "")
    assert second["likes"] == "1234567890123456789"
    assert str(second["ok"]).lower() == "true"
    assert third["seed_text"] == f"{guard}=1+1"
    assert third["tags"] == '["x; y"]'
    assert not third["text"]


def test_no_cell_of_xlsx_is_a_formula(tmp_path: Path, ledger: Ledger) -> None:
    export(ledger, POSTS, tmp_path / "x.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    risky = [
        c for row in sheet.iter_rows() for c in row if isinstance(c.value, str) and c.value[:1] in "=+-@"
    ]
    assert {c.value for c in risky} == {"=cmd|' /C calc'!A0", "=cmd|'", "-note", "=1+1"}
    assert all(c.data_type == "s" and c.quotePrefix for c in risky)


@settings(deadline=None)
@given(st.text(alphabet=st.one_of(st.sampled_from("'=+-@\t\r\n＝"), st.characters(codec="utf-8"))))
def test_no_cell_of_csv_begins_as_a_formula_and_guarding_can_be_undone(text: str) -> None:
    guarded = cells.guarded(text)
    assert not re.match(r"[=+\-@\t\r\n＝＋－＠]", guarded)
    assert cells.unguarded(guarded) == text


def test_csv_begins_with_a_mark_for_excel_unless_told_otherwise(tmp_path: Path, ledger: Ledger) -> None:
    for bom in (True, False):
        export(ledger, POSTS, tmp_path / "x.csv", bom=bom)
        assert (tmp_path / "x.csv").read_bytes().startswith(b"\xef\xbb\xbf") == bom


def test_json_lines_keep_the_types_and_ris_is_what_reference_managers_read(
    tmp_path: Path, ledger: Ledger
) -> None:
    export(ledger, POSTS, tmp_path / "x.jsonl", verdicts={"relevant"})
    (record,) = map(json.loads, (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines())
    assert record["metadata"] == POSTS["d1"].metadata
    assert (record["seed_metadata"], record["tags"]) == (SEEDS[0].metadata, ["one", "two"])
    export(ledger, POSTS, tmp_path / "x.ris")
    first = (tmp_path / "x.ris").read_bytes().decode().split("ER  - ")[0].split("\r\n")
    assert first[:4] == ["TY  - GEN", "ID  - d1", "TI  - T", "AB  - =cmd|' /C calc'!A0"]
    assert {"UR  - https://x.y/1", "KW  - one", "N1  - ASReview_relevant", "N1  - -note"} <= set(first)


def test_trec_files_are_read_by_our_evaluation(tmp_path: Path, ledger: Ledger) -> None:
    ledger.add(Judgement("s1", "d1", "not", "ben"))  # a conflict
    report = export(ledger, None, tmp_path / "x.qrels")
    assert (report.rows, report.left_out, report.without_document) == (1, 3, 4)
    assert {q: dict(d) for q, d in read_qrels(tmp_path / "x.qrels").items()} == {"s1": {"d2": 0}}
    export(ledger, None, tmp_path / "x.run", reviewer="ana")
    assert {q: dict(d) for q, d in read_run(tmp_path / "x.run").items()} == {"s1": {"d1": 2, "d2": 1}}
    ledger.add(Judgement("a b", "d", "not"))
    with pytest.raises(InputError, match=r"the id 'a b' cannot be a TREC column: write \.csv"):
        export(ledger, None, tmp_path / "x.qrels")


@pytest.mark.parametrize("name", ["x", "x.xls", "x.json", "x.csv.gz"])
def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path, ledger: Ledger, name: str) -> None:
    with pytest.raises(InputError, match=r"must end in \.csv, \.xlsx, \.jsonl, \.qrels, \.run, \.ris"):
        export(ledger, None, tmp_path / name)
    assert not (tmp_path / name).exists()
    with pytest.raises(InputError, match=r"must end in \.csv"):
        import_judgements(tmp_path / name, ledger)


def test_a_text_beyond_a_cell_is_cut_and_counted(tmp_path: Path, ledger: Ledger) -> None:
    posts = Corpus({"d1": Document("d1", "𝕩" * 20_000), "d2": Document("d2", "x" * 32_767)})
    assert export(ledger, posts, tmp_path / "x.xlsx").cut == 1
    first, second, _ = rows_of(tmp_path / "x.xlsx")
    assert first["text"].startswith("𝕩" * 16_000)
    assert first["text"].endswith(cells.CUT)
    assert len(first["text"].encode("utf-16-le")) <= 2 * cells.MAX_CELL
    assert second["text"] == "x" * 32_767


TEXT = st.text(
    st.one_of(st.sampled_from("'=+-@;,\"\t\r\n _x000D_[]"), st.characters(codec="utf-8")), max_size=12
)
NUMBER = st.none() | st.integers(-(10**9), 10**9).map(lambda n: n / 1000)  # XLSX keeps 16 digits
GIVEN = st.builds(
    Judgement,
    seed=TEXT.filter(bool),
    id=TEXT.filter(bool),
    verdict=st.sampled_from(VERDICTS),
    reviewer=st.sampled_from(["ana", "=ben", "ç e"]),
    note=TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    score=NUMBER,
    probability=st.none() | st.integers(0, 1000).map(lambda n: n / 1000),
    model=TEXT,
    phase=st.sampled_from(["queue", "audit", "search", "control"]),
    time=st.just(TIME),
)


@pytest.mark.parametrize("suffix", LOSSLESS)
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=40,
    deadline=None,
)
@given(judgements=st.lists(GIVEN, min_size=1, max_size=6))
def test_what_leaves_comes_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, judgements: list[Judgement]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    with Ledger(folder / "a", durable=False) as out, Ledger(folder / "b", durable=False) as back:
        out.put_seeds([Seed("=s", "\r\n a", metadata={"a": "\x01"})])
        out.add_all(judgements)
        export(out, POSTS, folder / f"x{suffix}")
        report = import_judgements(folder / f"x{suffix}", back)
        standing = out.judgements()
        assert (report.added, report.quarantined) == (len(standing), 0)
        assert back.judgements() == tuple(dataclasses.replace(j, phase="prior") for j in standing)
        again = import_judgements(folder / f"x{suffix}", back)
        assert (again.added, again.present) == (0, len(standing))


BAD = {
    ".csv": ("seed;id;verdict;score\ns;a;yes;\ns;b;perhaps;\ns;;1;\ns;c;0;many\ns;d;n;1;2\n\ns;e;N;-1\n", 4),
    ".jsonl": ('{"id":"a","label":1}\nno\n[1]\n{"id":["b"],"label":1}\n{"id":"e","label":false,"tags":[1]}\n'
               '{"id":"\\ud800","label":1}\n{"id":"e","label":0}\n', 5),
    ".qrels": ("s 0 a 2\ns 0 b\ns 0 c x\n\ns 0 e 0\n", 2),
    ".ris": ("TY  - GEN\nID  - a\nN1  - ASReview_relevant\nER  - \n\nTY  - GEN\nID  - b\nER  - \n"
             "TY  - GEN\nN1  - linker: {\nER  - \nTY  - GEN\nID  - c\n"
             "TY  - GEN\nID  - e\nAB  - long\ntext\nN1  - ASReview_irrelevant\nER  - \n", 3),
}  # fmt: skip


@pytest.mark.parametrize("suffix", BAD)
def test_records_that_are_no_judgements_are_kept_apart_and_counted(tmp_path: Path, suffix: str) -> None:
    path, ledger = tmp_path / f"x{suffix}", Ledger(tmp_path / "l")
    ledger.put_seeds([Seed("s", "text")])
    content, bad = BAD[suffix]
    path.write_text(content, encoding="utf-8")
    report = import_judgements(path, ledger, reviewer="ana")
    assert [(j.seed, j.id, j.verdict) for j in ledger.judgements()] == [
        ("s", "a", "relevant"),
        ("s", "e", "not"),
    ]
    assert (report.added, report.quarantined) == (2, bad)
    assert report.quarantine == tmp_path / f"x{suffix}.quarantine.jsonl"
    kept = [json.loads(line) for line in report.quarantine.read_text(encoding="utf-8").splitlines()]
    assert len(kept) == bad
    assert all(record["reason"] and record["line"] for record in kept)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (",,yesterday", "the time 'yesterday' is not written as"),
        (",,2026-13-45 99:99:99", "the time '2026-13-45 99:99:99' is not written as"),
        ("nan,,", "the score 'nan' is not a number"),
        ("1e400,,", "the score '1e400' is not a number"),
        (",2,", "the probability 2 is not between 0 and 1"),
    ],
)
def test_times_and_numbers_that_would_break_later_steps_are_kept_apart(
    tmp_path: Path, cells: str, reason: str
) -> None:
    """The page computes with times, and JSON lines have no NaN."""
    judgements, report = import_table(tmp_path, f"id,verdict,score,probability,time\nd,yes,{cells}\n")
    assert not judgements and report.quarantine
    assert reason in report.quarantine.read_text(encoding="utf-8")


def test_times_without_a_time_zone_are_utc(tmp_path: Path) -> None:
    import_table(tmp_path, "id,verdict,time\nd,yes,2026-01-31 12:00\ne,no,2026-01-31T12:00:00+02:00\n")
    times = [j.time for j in Ledger(tmp_path / "table.sqlite").judgements()]
    assert times == ["2026-01-31T12:00:00.000+00:00", "2026-01-31T10:00:00.000+00:00"]


def test_a_table_named_ris_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ris").write_text("id,verdict\nd,yes\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"has no record: one begins with 'TY  - ' in RIS"):
        import_judgements(tmp_path / "x.ris", Ledger(tmp_path / "l"), seed="s")


def test_a_sheet_that_excel_saved_comes_in(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Document_ID", "Included", "Note"], ["d1", True, "é"], ["d2", 0, None], [None, None, None]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    (tmp_path / "x.csv").write_bytes(
        "document_id;included;note\r\nd1;1;café\r\nd2;0;naïve\r\n".encode("cp1252")
    )
    for suffix, notes in ((".xlsx", ["é", ""]), (".csv", ["café", "naïve"])):
        ledger = Ledger(tmp_path / f"l{suffix}")
        import_judgements(tmp_path / f"x{suffix}", ledger, reviewer="ana", seed="s")
        assert [(j.id, j.verdict) for j in ledger.judgements()] == [("d1", "relevant"), ("d2", "not")]
        assert [j.note for j in ledger.judgements()] == notes


def import_table(folder: Path, text: str, **options: Any) -> tuple[list[tuple[str, str]], ImportReport]:
    """Import a CSV into a new ledger with the seeds s1 and s2; return ids with verdicts, and the report."""
    ledger = Ledger(folder / "table.sqlite", durable=False)
    ledger.put_seeds(SEEDS)
    (folder / "x.csv").write_text(text, encoding="utf-8")
    report = import_judgements(folder / "x.csv", ledger, **{"seed": "s1", **options})
    return [(j.id, j.verdict) for j in ledger.judgements()], report


def test_what_a_reviewer_said_in_asreview_counts_before_the_labels_of_the_data_set(tmp_path: Path) -> None:
    """ASReview keeps the data's columns, such as `included`, and leaves its own empty for unread records."""
    rows = "".join(f"d{i},{int(i % 5 == 0)},{'' if i >= 60 else int(i % 3 == 0)}\n" for i in range(303))
    given, report = import_table(tmp_path, f"id,included,asreview_label\n{rows}-1,1,-1\n")
    assert given == [(f"d{i}", "relevant" if i % 3 == 0 else "not") for i in range(60)]
    assert (report.added, report.unread, report.quarantined) == (60, 244, 0)


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("label,included", "label"),
        ("included,label_included", "included"),
        ("asreview_label,verdict", "asreview_label"),
    ],
)
def test_columns_that_disagree_are_named_with_the_option_that_chooses(
    tmp_path: Path, header: str, chosen: str
) -> None:
    with pytest.raises(InputError) as caught:
        import_table(tmp_path, f"id,{header}\nd1,1,yes\nd2,1,0\n")
    one, other = header.split(",")
    assert f"{one!r}" in str(caught.value)
    assert f"{other!r}" in str(caught.value)
    assert "x.csv:3: " in str(caught.value)
    assert "`label`" in str(caught.value)
    assert import_table(tmp_path, f"id,{header}\nd1,1,yes\nd2,1,0\n", label=chosen.upper())[0] == [
        ("d1", "relevant"), ("d2", "relevant" if header.startswith(chosen) else "not"),
    ]  # fmt: skip


def test_columns_that_agree_are_one_and_an_empty_one_is_silent(tmp_path: Path) -> None:
    given, report = import_table(tmp_path, "id,label,included\nd1,1.0,yes\nd2,0,n\nd3,,\n")
    assert given == [("d1", "relevant"), ("d2", "not")]
    assert report.unread == 1
    with pytest.raises(InputError, match="disagree"):
        import_table(tmp_path, "id,label,included\nd1,,1\n")


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'labels' \(`label`\); its columns are: id, label"):
        import_table(tmp_path, "id,label\nd1,1\n", label="labels")
    with pytest.raises(
        InputError, match=r"no column of verdicts.*name it with `label`; its columns are: id, text"
    ):
        import_table(tmp_path, "id,text\nd1,yes\n")


def test_an_empty_cell_is_not_filled_from_another_column(tmp_path: Path) -> None:
    given, report = import_table(tmp_path, "id,record_id,verdict\nd1,0,yes\n,1,yes\n")
    assert (given, report.quarantined) == ([("d1", "relevant")], 1)


def test_a_seed_that_does_not_exist_is_an_error_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no seed 's3' in .*table\.sqlite: choose one of s1, s2 with `seed`"
    ):
        import_table(tmp_path, "id,label\nd1,1\n", seed="s3")
    given, report = import_table(tmp_path, "id,seed,label\nd1,s2,1\nd2,s3,1\n")
    assert (given, report.quarantined) == ([("d1", "relevant")], 1)
    assert report.quarantine
    assert "there is no seed 's3' in the ledger" in report.quarantine.read_text(encoding="utf-8")


def test_what_has_no_seed_or_no_such_reviewer_is_error_that_says_how(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(InputError, match=r"'anna' has judged nothing in .*: reviewers are 'ana', 'ben'"):
        export(ledger, None, tmp_path / "x.csv", reviewer="anna")
    (tmp_path / "x.csv").write_text("id,verdict\nd1,yes\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"x\.csv does not say which seed .*: name the seed with `seed`"):
        import_judgements(tmp_path / "x.csv", ledger)
    records = ("ID  - a\nN1  - ASReview_relevant", "ID  - b\nN1  - ASReview_not_seen")
    text = "".join(f"TY  - GEN\n{record}\nER  - \n" for record in records)
    (tmp_path / "x.ris").write_text(text, encoding="utf-8")
    report = import_judgements(tmp_path / "x.ris", ledger, seed="s1")
    assert (report.added, report.unread, report.quarantined) == (1, 1, 0)


def test_export_is_same_each_time_and_one_that_fails_leaves_old_file(tmp_path: Path, ledger: Ledger) -> None:
    for suffix in (".csv", ".jsonl", ".ris", ".qrels", ".run"):
        contents = set()
        for name in itertools.islice("ab", 2):
            export(ledger, POSTS, tmp_path / f"{name}{suffix}")
            contents.add((tmp_path / f"{name}{suffix}").read_bytes())
        assert len(contents) == 1

    class Failing(Corpus):
        def document(self, id_: str) -> Document:
            raise InputError("no more")

    for suffix in (".csv", ".xlsx", ".jsonl", ".ris"):
        path = tmp_path / f"x{suffix}"
        path.write_text("old", encoding="utf-8")
        with pytest.raises(InputError, match="no more"):
            export(ledger, Failing(POSTS), path)
        assert path.read_text(encoding="utf-8") == "old"
    assert not list(tmp_path.glob(".*.tmp"))
    with pytest.raises(InputError, match="cannot write"):
        export(ledger, POSTS, tmp_path / "none" / "x.csv")
