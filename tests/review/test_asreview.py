"""Projects and tables go to ASReview and return; ASReview's own reader is the judge, if it is installed."""

import contextlib
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexes.interface import Document
from linker.base.errors import InputError
from linker.corpora import asreview, read_corpus
from linker.review.exporting import export
from linker.review.importing import import_judgements
from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger
from tests.review.papers import Corpus

TIME = "2026-01-02T03:04:05.678+00:00"
# The Python of an environment with asreview 3: this one, or one in which linker need not be installed.
PYTHON = os.environ.get("ASREVIEW_PYTHON") or (sys.executable if importlib.util.find_spec("asreview") else "")
needs_asreview = pytest.mark.skipif(
    not PYTHON, reason="asreview is not installed, and ASREVIEW_PYTHON names no python that has it"
)


PAPERS = Corpus(
    {
        d.id: d
        for d in (
            Document("p1", "Rain & floods; a study.", "Floods", {"authors": ["Doe, J.", "Roe, R."], "year": 2020,
                                                                "doi": "10.1/x", "keywords": ["rain", "flood"]}),
            Document("p2", "Drought, in lines", "Droughts", {"journal": "J. Dry"}),
            Document("p3", "", "Title only"),
            Document("p4", "=SUM(1)", "Never read", {"url": "https://x.y/4"}),
            Document("p5", "A seed", "Seed"),
        )
    }
)  # fmt: skip
SEEDS = [Seed("s1", "A seed", document="p5")]
JUDGED = [
    Judgement("s1", "p1", "relevant", "ana", "a ü note", ("core",), 1.5, None, "m", "queue", TIME),
    Judgement("s1", "p2", "not", "ana", "", ("wrong topic",), time="2026-01-02T03:05:00.000+00:00"),
    Judgement("s1", "p3", "maybe", "ana", time=TIME),
]
LABELS = {"p1": 1, "p2": 0, "p3": None, "p4": None, "p5": 1}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "review.sqlite", durable=False)
    made.put_seeds(SEEDS)
    made.add_all(JUDGED)
    return made


def back(path: Path) -> dict[str, Judgement]:
    with Ledger(path.with_name(f"{path.name}.back"), durable=False) as ledger:
        report = import_judgements(path, ledger, seed="s1", reviewer="cem")
        assert (report.quarantined, report.unread) == (0, 2)
        return {j.id: j for j in ledger.judgements()}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".ris", ".asreview"])
def test_every_document_leaves_with_label_and_comes_back(tmp_path: Path, ledger: Ledger, suffix: str) -> None:
    report = export(ledger, PAPERS, tmp_path / f"x{suffix}", for_asreview=True)
    assert (report.rows, report.left_out, report.what) == (5, 1, "documents")
    found = back(report.path)
    assert {id_: int(j.relevant) for id_, j in found.items()} == {"p1": 1, "p2": 0, "p5": 1}
    assert found["p1"].note == "a ü note"
    assert found["p1"].time[:19] == TIME[:19]
    assert (found["p1"].tags, found["p2"].tags) == (("core",), ("wrong topic",))


@pytest.mark.parametrize("suffix", [".ris", ".asreview"])
def test_an_export_can_be_indexed_with_the_same_ids(tmp_path: Path, ledger: Ledger, suffix: str) -> None:
    path = export(ledger, PAPERS, tmp_path / f"x{suffix}", for_asreview=True).path
    documents = [d for d in read_corpus(path) if isinstance(d, Document)]
    assert [d.id for d in documents] == [*PAPERS]
    assert [d.title for d in documents] == [d.title for d in PAPERS.values()]
    assert [d.text for d in documents][:2] == [PAPERS["p1"].text, PAPERS["p2"].text]
    keywords = documents[0].metadata["keywords"]
    assert keywords in (["rain", "flood"], "rain;flood")


def test_a_project_without_ids_counts_its_records_as_asreview_does(tmp_path: Path, ledger: Ledger) -> None:
    def unnamed(name: str, content: bytes) -> bytes:
        return content.replace(b"id,title", b"key,title", 1) if name.endswith(".csv") else content

    path = changed(export(ledger, PAPERS, tmp_path / "x.asreview").path, unnamed)
    documents = [d for d in read_corpus(path) if isinstance(d, Document)]
    assert [d.id for d in documents] == ["0", "1", "2", "3", "4"]
    assert [d.metadata["key"] for d in documents] == [*PAPERS]
    assert {id_: int(j.relevant) for id_, j in back(path).items()} == {"0": 1, "1": 0, "4": 1}


def test_the_same_review_gives_the_same_project(tmp_path: Path, ledger: Ledger) -> None:
    contents = set[bytes]()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        contents.add(export(ledger, PAPERS, tmp_path / name / "x.asreview").path.read_bytes())
    assert len(contents) == 1


def test_refusals_say_what_to_do(tmp_path: Path, ledger: Ledger) -> None:
    with pytest.raises(InputError, match="name their index with `index`"):
        export(ledger, None, tmp_path / "x.asreview")
    with pytest.raises(InputError, match=r"must end in \.csv, \.xlsx, \.ris, \.asreview"):
        export(ledger, PAPERS, tmp_path / "x.jsonl", for_asreview=True)
    (tmp_path / "no.asreview").write_bytes(b"no zip")
    with pytest.raises(InputError, match="is not an ASReview project"):
        list(read_corpus(tmp_path / "no.asreview"))
    old = export(ledger, PAPERS, tmp_path / "old.asreview").path
    with pytest.raises(InputError, match="version 2: open it in ASReview 3 and export it again"):
        list(read_corpus(with_config(old, project_file_version=2)))
    with pytest.raises(InputError, match="0 datasets"):
        list(read_corpus(with_config(old, datasets=[])))
    with pytest.raises(InputError, match="1 datasets, expected one"):
        list(read_corpus(with_config(old, datasets=[{"id": "a", "name": "../up.csv"}])))


@pytest.mark.parametrize("method", ["labels", "records"])
def test_a_project_whose_database_runs_in_circles_is_refused(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    path = export(ledger, PAPERS, tmp_path / "x.asreview").path
    monkeypatch.setattr(asreview, "LONGEST", 0.1)
    with asreview.open_project(path) as project:
        with contextlib.closing(sqlite3.connect(project.database)) as database:
            database.executescript("""DROP TABLE record; CREATE VIEW record AS WITH RECURSIVE circle (n) AS
                (SELECT 0 UNION ALL SELECT n + 1 FROM circle) SELECT n AS record_id, n AS dataset_row FROM circle
                WHERE n < 0""")
        with pytest.raises(InputError, match=r"cannot read results\.db: interrupted"):
            getattr(project, method)()


def with_config(path: Path, **values: Any) -> Path:
    def configured(name: str, content: bytes) -> bytes:
        return json.dumps({**json.loads(content), **values}).encode() if name == "project.json" else content

    return changed(path, configured)


def changed(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """Write a copy of a project with other contents."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(path.with_name("changed.asreview"), "w") as out:
        for name in source.namelist():
            out.writestr(name, change(name, source.read(name)))
    return path.with_name("changed.asreview")


SCRIPT = """
import json, sys, warnings
import pandas as pd
from pathlib import Path
from asreview.data.loader import load_records
from asreview.project.api import Project
warnings.simplefilter("error")
folder = Path(sys.argv[1])
out = {}
for suffix in (".csv", ".xlsx", ".ris"):
    out[suffix] = [[r.title, r.abstract, r.included, r.keywords, r.authors, r.year, r.doi]
                   for r in load_records(folder / f"x{suffix}", dataset_id="d")]
project = Project.load(folder / "x.asreview", folder / "projects", safe_import=True, reset_model_if_not_found=True)
with project.db as db:
    table = db.get_results_table(groups=True)
    out["results"] = json.loads(table[["record_id", "label", "time", "note"]].to_json(orient="values"))
    out["priors"] = db.get_priors()["record_id"].tolist()
    out["records"] = [[r.title, r.abstract] for r in db.input.get_records()] if hasattr(db.input, "get_records") else []
    out["valid"] = db._is_valid() is None
    db.label_record(3, 0)
out["ids"] = project.read_input_data()["id"].tolist()
project.export(folder / "again.asreview")
from asreview.data.ris import RISReader, RISWriter
from asreview.data.tabular import CSVReader, CSVWriter
data = RISReader.read_data(folder / "x.ris")
data["asreview_label"] = pd.Series([1, 0, None, None, 1], dtype=object)
data["asreview_note"] = ["theirs", None, None, None, None]
RISWriter.write_data(data, folder / "again.ris")
CSVWriter.write_data(CSVReader.read_data(folder / "x.csv"), folder / "again.csv")
print(json.dumps(out))
"""


@needs_asreview
def test_asreview_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path, ledger: Ledger) -> None:
    for suffix in (".csv", ".xlsx", ".ris", ".asreview"):
        export(ledger, PAPERS, tmp_path / f"x{suffix}", for_asreview=True)
    process = subprocess.run(
        [PYTHON, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
    )
    assert not process.returncode, process.stderr[-2000:]
    theirs = json.loads(process.stdout.splitlines()[-1])
    for suffix in (".csv", ".xlsx", ".ris"):
        assert [record[2] for record in theirs[suffix]] == [*LABELS.values()]
        assert [record[0] for record in theirs[suffix]] == [d.title for d in PAPERS.values()]
        assert theirs[suffix][0][1] == PAPERS["p1"].text
        assert theirs[suffix][0][3:] == [["rain", "flood"], ["Doe, J.", "Roe, R."], 2020, "10.1/x"]
    labels = {number: label for number, label, _, _ in theirs["results"]}
    assert labels == {0: 1, 1: 0, 4: 1}
    assert theirs["priors"] == [4]
    assert theirs["ids"] == [*PAPERS]
    assert [note for number, _, _, note in theirs["results"] if number == 0] == ["a ü note"]
    copy = Ledger(tmp_path / "again", durable=False)
    report = import_judgements(tmp_path / "again.asreview", copy, seed="s1")
    assert (report.added, report.unread) == (4, 1)  # including the document that ASReview labelled
    assert {j.id: j.verdict for j in copy.judgements()} == {
        "p1": "relevant", "p2": "not", "p4": "not", "p5": "relevant",
    }  # fmt: skip
    for suffix in (".ris", ".csv"):
        found = back(tmp_path / f"again{suffix}")
        assert {id_: int(j.relevant) for id_, j in found.items()} == {"p1": 1, "p2": 0, "p5": 1}
    assert found["p1"].note == "a ü note"
