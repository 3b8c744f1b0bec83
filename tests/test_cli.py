"""The commands as users run them: in their own process, on files."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from indexes.cores import cores
from linker import __version__
from linker.review.interface import Judgement
from linker.review.ledger import Ledger
from tests.helpers import linker, linker_process, write_corpus, write_json_lines

NEWS = [
    ("a1", "Flood in Valencia", "Heavy rain flooded streets in Valencia on Tuesday.", "en", 2024),
    ("a2", "Election", "Voters in Portugal went to the polls to elect a new parliament.", "en", 2025),
    ("a3", "Hochwasser", "Starker Regen überflutete die Straßen von Valencia.", "de", 2024),
    ("a4", "Volcano", "A volcano erupted in Iceland and flights were cancelled.", "en", 2024),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the news and their index, which tests do not change."""
    folder = tmp_path_factory.mktemp("news")
    lines = [
        json.dumps({"_id": i, "title": t, "text": x, "metadata": {"lang": lang, "year": year}})
        for i, t, x, lang, year in NEWS
    ]
    (folder / "news.jsonl").write_text("\n".join(lines), encoding="utf-8")
    linker("index", "build", folder / "news.jsonl", "--out", folder / "index")
    return folder


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "index", tmp_path / "index"))


def test_build_search_add_delete_info_verify(index: Path, tmp_path: Path) -> None:
    found = json.loads(linker("search", index, "--text", "rain floods Valencia", "--json").stdout)
    assert found["hits"][0]["id"] == "a1"
    assert found["hits"][0]["metadata"] == {"lang": "en", "year": 2024}
    assert found["mode"] == "bm25"
    more = tmp_path / "more.csv"
    more.write_text('key,body\nb1,"Rain, rain\nand more rain"\na4,Volcano again\n', encoding="utf-8")
    added = linker("index", "add", index, more, "--id-column", "key", "--text-column", "body")
    assert "1 document added, 5 in all" in added.stdout
    assert "1 record could not be used" in added.stderr
    replaced = linker("index", "add", index, more, "--id-column", "key", "--text-column", "body", "--replace")
    assert "2 documents added, 5 in all" in replaced.stdout
    assert (
        json.loads(linker("search", index, "--text", "volcano", "--json").stdout)["hits"][0]["text"]
        == "Volcano again"
    )
    ids = tmp_path / "ids.txt"
    ids.write_text("a1\nb1\n", encoding="utf-8")
    assert "3 documents deleted, 2 left" in linker("index", "delete", index, "a3", "--ids", ids).stdout
    unknown = linker("index", "delete", index, "a2", "zzz", check=1)
    assert unknown.stderr == "error: not in the index: 'zzz'\n"
    info = json.loads(linker("index", "info", index, "--json").stdout)
    assert (info["documents"], info["quarantined"], info["complete"]) == (2, 1, True)
    assert info["generation"] == 4
    linker("index", "verify", index)


def test_a_range_over_dates_that_are_written_otherwise_warns(tmp_path: Path) -> None:
    records = [
        {"id": f"a{n}", "text": "flood", "date": f"31.{n}.2025", "day": "2025-01-31"} for n in (10, 12)
    ]
    write_json_lines(tmp_path / "c.jsonl", records)
    linker("index", "build", tmp_path / "c.jsonl", "--out", tmp_path / "i")
    arguments = ("search", tmp_path / "i", "--text", "flood", "--where")
    done = linker(*arguments, "date>=2025-01-01")
    assert "2 of 2 values of 'date' cannot be compared with '2025-01-01'" in done.stderr
    assert "'31.10.2025'" in done.stderr and "(here 2025-10-31)" in done.stderr
    assert not linker(*arguments, "day>=2025-01-01").stderr
    assert "the field holds dates" in linker(*arguments, "day>=31", check=1).stderr
    assert "(date>=2025-12-31)" in linker(*arguments, "date>=31.12.2025", check=1).stderr


def test_where_filters_and_says_what_it_cannot_read(index: Path) -> None:
    def ids(*where: str) -> set[str]:
        options = [x for w in where for x in ("--where", w)]
        found = json.loads(
            linker("search", index, "--text", "Valencia Iceland Portugal", "--json", *options).stdout
        )
        return {h["id"] for h in found["hits"]}

    huge = linker("search", index, "--text", "Valencia", "-k", "1000000000000", "--json").stdout
    assert {h["id"] for h in json.loads(huge)["hits"]} == {"a1", "a3"}
    assert ids() == {"a1", "a2", "a3", "a4"}
    assert ids("lang=de") == {"a3"}
    assert ids("lang=en", "year=2024") == {"a1", "a4"}
    assert ids("lang=de", "lang=en", "year=2025") == {"a2"}
    assert ids("lang=fr") == set()
    assert ids("lang=de|en", "year>=2025") == {"a2"}
    assert ids("lang!=de", "year<2025") == {"a1", "a4"}
    unknown = linker("search", index, "--text", "x", "--where", "land=de", check=1).stderr
    assert unknown == "error: no document has the field 'land': did you mean 'lang'?\n"
    assert "ISO 8601" in linker("search", index, "--text", "x", "--where", "year>new", check=1).stderr
    assert "write field=value" in linker("search", index, "--text", "x", "--where", "lang", check=1).stderr


def test_queries_make_a_run_that_evaluates(index: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.tsv"
    queries.write_text("q1\tvolcano flights Iceland\nq2\tparliament polls\nq3\tzzz\n", encoding="utf-8")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q1 0 a4 1\nq2 0 a2 1\nq3 0 a1 1\n", encoding="utf-8")
    run = tmp_path / "run.txt"
    linker("search", index, "--queries", queries, "-k", "3", "--run-name", "mine", "--out", run)
    lines = [line.split() for line in run.read_text(encoding="utf-8").splitlines()]
    assert {len(line) for line in lines} == {6}
    assert {line[5] for line in lines} == {"mine"}
    assert [line[3] for line in lines if line[0] == "q1"] == ["1"]
    printed = linker("search", index, "--queries", queries, "-k", "3", "--run-name", "mine").stdout
    assert printed == run.read_text(encoding="utf-8")
    figures = json.loads(linker("evaluate", qrels, run, "-m", "recip_rank", "--json").stdout)
    assert "0.66" in json.dumps(figures)


def test_redirected_stdout_is_written_not_replaced(index: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    queries = tmp_path / "q.tsv"
    queries.write_text("q1\tvolcano\n", encoding="utf-8")
    target = tmp_path / "redirected.txt"
    with target.open("wb") as file:
        command = [sys.executable, "-m", "linker", "search", str(index), "--queries", str(queries)]
        subprocess.run(command, stdout=file, check=True)
    assert target.read_text(encoding="utf-8").startswith("q1 Q0 a4 1 ")


def test_find_with_judgements_on_a_file_and_on_a_terminal(index: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text(json.dumps({"_id": "s", "text": "rain in Valencia Iceland"}) + "\n", encoding="utf-8")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("s 0 a1 1\ns 0 a3 1\n", encoding="utf-8")
    out = tmp_path / "found.jsonl"
    arguments = ("find", index, "--seeds", seeds, "--until", "2", "--out", out)
    report = json.loads(linker(*arguments, "--judgements", qrels, "--json").stdout)
    assert (report["relevant"], report["stopped"]) == (2, "2 relevant found")
    assert [json.loads(line)["id"] for line in out.read_text(encoding="utf-8").splitlines()] == ["a1", "a3"]
    ledger = tmp_path / "hand.sqlite"
    hand = ("find", index, "--seeds", seeds, "--until", "2", "--ledger", ledger)
    first = linker(*hand, stdin="y\nu\nwhat?\nn\nq\n")
    assert first.stdout.startswith("read 1 of 4, relevant 0")
    assert "y: relevant" in first.stderr
    assert first.stdout.endswith("stopped by the reviewer\n")
    assert "no input: stdin is closed" in linker(*hand, stdin="").stdout
    second = linker(*hand, stdin="y\ny\ny\n")
    assert "relevant 2" in second.stdout
    assert "2 relevant found" in second.stdout
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"_id": "t", "text": "parliament"}) + "\n", encoding="utf-8")
    refused = linker("find", index, "--seeds", other, "--ledger", ledger, stdin="q\n", check=1)
    assert "is a review of different seeds" in refused.stderr


def test_seeds_that_cannot_be_used_go_to_quarantine(index: Path, tmp_path: Path) -> None:
    seeds, qrels, unused = (tmp_path / name for name in ("s.csv", "qrels.txt", "s.csv.quarantine.jsonl"))
    seeds.write_text("id;text\ns;rain in Valencia\nt;\ns;the same id\n", encoding="utf-8")
    qrels.write_text("s 0 a1 1\n", encoding="utf-8")
    arguments = ("find", index, "--seeds", seeds, "--judgements", qrels, "--until", "1")
    done = linker(*arguments)
    assert "relevant 1" in done.stdout
    assert "2 unusable entries left out; the first is line 3: no text" in done.stderr
    assert f"are in {unused}" in done.stderr
    assert [json.loads(line)["line"] for line in unused.read_text().splitlines()] == [3, 4]
    seeds.write_text("id;text\nt;\n", encoding="utf-8")
    assert "no text could be read; the first reason: no text" in linker(*arguments, check=1).stderr


def test_static_find_goes_on_with_what_was_judged_and_skips(index: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.tsv"
    seeds.write_text("s\train in Valencia Iceland\nt\tparliament Portugal\n", encoding="utf-8")
    with Ledger(tmp_path / "seeds.tsv.review.sqlite") as ledger:
        ledger.add(Judgement("s", "a1", "relevant"))
    options = ("--static", "--order", "rank", "--per-seed", "--until", "1", "--json")
    arguments = ("find", index, "--seeds", seeds, *options)
    first = linker(*arguments, stdin="s\nm\nn\nq\n")
    report = json.loads(first.stdout)
    assert "== seed t" in first.stderr
    assert "== seed s" not in first.stderr
    # The other seed's only candidate reappears after it was skipped.
    assert (report["read"], report["relevant"], report["maybe"], report["skipped"]) == (2, 1, 1, 0)
    assert report["stopped"] == "every candidate was judged"
    assert linker("find", index, "--seeds", seeds, "--score", "2", check=2).stderr


MISTAKES = (
    ("search {index}", 2, "give a text or --queries"),
    ("search {index} --text x -k 0", 2, "0"),
    ("search {index} --text x --mode dense", 1, "the index has no vectors"),
    ("search {index} --queries {news} --out /nowhere/run", 1, "/nowhere/run"),
    ("index build {news} --out {index}", 1, "already holds an index"),
    ("index build {news} --out {here}", 1, "lies inside"),
    ("index build {news} --out {out} --language klingon", 1, "klingon"),
    ("index build {news} --out {out} --encoder no-such-model", 1, "no-such-model"),
    ("index delete {index}", 2, "name the ids"),
    ("nonsense", 2, "nonsense"),
)


@pytest.mark.parametrize(("arguments", "status", "expected"), MISTAKES)
def test_mistakes_end_with_one_line_and_the_right_status(
    built: Path, tmp_path: Path, arguments: str, status: int, expected: str
) -> None:
    places = {"index": built / "index", "news": built / "news.jsonl"}
    places |= {"out": tmp_path / "out", "here": built}
    done = linker(*[a.format(**places) for a in arguments.split()], check=status)
    assert expected in done.stderr
    assert done.stdout == ""
    if status == 1:
        assert done.stderr.startswith("error: ")
        assert not (tmp_path / "out" / "manifest.json").exists()


def test_replace_keeps_the_first_of_a_repeated_id_whatever_the_batch(index: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "x", "text": "first"}\n{"id": "x", "text": "second"}\n', encoding="utf-8")
    for size in ("1", "256"):
        done = linker("index", "add", index, more, "--replace", "--batch-size", size)
        assert "1 document added" in done.stdout
        assert (
            json.loads(linker("search", index, "--text", "first", "--json").stdout)["hits"][0]["text"]
            == "first"
        )


def test_results_follow_links_and_stay_out_of_the_corpus(index: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q.tsv"
    queries.write_text("q1\tvolcano\n", encoding="utf-8")
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    linker("search", index, "--queries", queries, "--out", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text(encoding="utf-8").startswith("q1 ")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("words", encoding="utf-8")
    assert "lies inside the corpus" in linker("index", "build", folder, "--out", folder / "i", check=1).stderr
    assert not (folder / "i").exists()


def test_resume_notices_an_edit_of_the_same_size_and_other_columns(tmp_path: Path) -> None:
    from linker.corpora import Columns
    from linker.corpora.identity import identity
    from linker.engine import building

    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "1", "text": "rain", "other": "x"}\n', encoding="utf-8")
    options = building.BuildOptions()
    state = identity(corpus, options.columns, tmp_path / "i")
    assert identity(corpus, Columns(text="other"), tmp_path / "i") != state
    corpus.write_text('{"id": "1", "text": "hail"}\n', encoding="utf-8")
    assert identity(corpus, options.columns, tmp_path / "i") != state


def test_interrupting_a_build_keeps_it_usable(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys
    import time

    corpus = write_corpus(tmp_path / "c.jsonl", 20_000)
    out = tmp_path / "i"
    command = [sys.executable, "-m", "linker", *f"index build {corpus} --out {out} --batch-size 16".split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "manifest.json").exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "--resume" in errors
    before = json.loads(linker("index", "info", out, "--json").stdout)
    assert not before["complete"]
    assert before["documents"] < 20_000
    assert "finish it first with" in linker("index", "add", out, corpus, check=1).stderr
    linker("index", "build", corpus, "--out", out, "--resume")
    assert json.loads(linker("index", "info", out, "--json").stdout)["documents"] == 20_000


def test_encode_writes_rows_in_the_corpus_order_or_names_the_bad_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl.gz"
    bad.write_bytes(gzip.compress(b'{"_id": "1", "text": "x"}\n{"_id": 2}\n'))
    done = linker("encode", "no-such-model", bad, "--out", tmp_path / "x.npy", check=1)
    assert "bad.jsonl.gz:2" in done.stderr


def test_doctor_names_versions_and_missing_servers() -> None:
    report = json.loads(linker("doctor", "--elasticsearch", "http://127.0.0.1:9", "--json").stdout)
    assert report["packages"]["numpy"]
    assert report["servers"]["elasticsearch"]["state"].startswith("does not answer")
    text = linker("doctor", "--elasticsearch", "http://127.0.0.1:9").stdout
    assert "extra    cpu: faiss-cpu" in text
    assert linker_process("--version").stdout.strip() == __version__


@pytest.mark.parametrize("error", [MemoryError(), ImportError("failed to map segment from shared object")])
def test_memory_that_is_short_is_one_line(
    error: Exception, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("indexes.collection.Collection.open", exhausted)
    done = linker("search", index, "word", check=1)
    assert (
        done.stderr.startswith("error: ") and "memory is short" in done.stderr and "ulimit -v" in done.stderr
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("OPENBLAS_THREAD_TIMEOUT", "16"), ("OMP_WAIT_POLICY", "passive"), ("OMP_NUM_THREADS", str(cores()))],
)
def test_threads_of_other_libraries_sleep_unless_the_user_says_otherwise(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenBLAS's would busy-wait once numpy is loaded, OpenMP's after each parallel part of an encoder."""
    monkeypatch.delenv(name, raising=False)
    linker("--version")
    assert os.environ[name] == value
    monkeypatch.setenv(name, "7")
    linker("--version")
    assert os.environ[name] == "7"
