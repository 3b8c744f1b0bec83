"""The commands as functions: the same messages as the command line, progress reports, and no output."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import linker as package
from linker.base import progress
from linker.base.errors import ConfigError, InputError
from linker.base.logs import logger, logging_to
from linker.engine.engine import Engine
from linker.review.session import Answer
from tests.helpers import linker, write_corpus


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def log() -> Iterator[list[str]]:
    kept = Kept()
    with logging_to(kept):
        yield kept.lines


@pytest.fixture
def index(tmp_path: Path) -> Path:
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 60), "--out", tmp_path / "i")
    return tmp_path / "i"


def pages(folder: Path) -> tuple[Path, Path]:
    for code in ("fr", "en"):
        lines = [json.dumps({"id": f"{code}{n}", "text": f"mot{n * 7} page {code}"}) for n in range(9)]
        (folder / f"{code}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "fr.jsonl", folder / "en.jsonl"


def test_link_is_the_command(tmp_path: Path, log: list[str]) -> None:
    told: list[tuple[str, int, int | None]] = []
    links = package.link(*pages(tmp_path), "hapax", progress=lambda *step: told.append(step))
    assert told[-1] == ("comparing", 9, 9)
    assert {page: max(found, key=found.__getitem__) for page, found in links.run.items()} == {
        f"fr{n}": f"en{n}" for n in range(9)
    }
    assert "language fr" in log[0]
    written = linker("link", *pages(tmp_path), "--method", "hapax", "--out", tmp_path / "run", "--json")
    assert json.loads(written.stdout) == {
        "run": str(tmp_path / "run"), "linked": 9, "linked_any": 9, "texts": 9, "targets": 9, "method": "hapax"
    }  # fmt: skip
    lines = [line.split() for line in (tmp_path / "run").read_text(encoding="utf-8").splitlines()]
    assert {(page, target): float(score) for page, _, target, _, score, _ in lines} == {
        (page, target): pytest.approx(score)
        for page, targets in links.run.items()
        for target, score in targets.items()
    }
    assert repr(links).startswith("<Links by hapax: 9 of 9 texts: fr0 → en0")
    assert "<td>en0</td>" in links._repr_html_()


def test_find_asks_about_documents_and_continues(index: Path, tmp_path: Path) -> None:
    def judge(question: package.Question) -> Answer:
        assert question.seed.full_text == "banel deras"
        return "relevant" if "banel" in question.document.full_text else "not"

    told: list[tuple[str, int, int | None]] = []
    ledger = tmp_path / "l.sqlite"
    first = package.find(
        index, ["banel deras"], judge, max_read=3, ledger=ledger, progress=lambda *step: told.append(step)
    )
    assert (first.read, told) == (3, [("judging", n, None) for n in (1, 2, 3)])
    assert package.find(index, ["banel deras"], judge, max_read=5, ledger=ledger).read == 5
    forgotten = package.find(Engine.open(index), {"s": "banel deras"}, judge, max_read=2)
    assert repr(forgotten).startswith(
        f"<FindReport: {forgotten.relevant} relevant of 2 read, 60 in all; 2 read"
    )
    assert "<td>read</td><td>2</td>" in forgotten._repr_html_()
    assert not list(tmp_path.glob("find*"))


def test_a_text_file_without_tabs_is_one_story(index: Path, tmp_path: Path) -> None:
    seeds = []

    def judge(question: package.Question) -> Answer:
        seeds.append((question.seed.id, question.seed.full_text))
        return "not"

    story = tmp_path / "my story.txt"
    story.write_text("banel\nderas\n")
    assert package.find(index, story, judge, max_read=1).read == 1
    story.write_text("s1\tbanel deras\nderas\n")
    assert package.find(index, story, judge, max_read=1, ledger=tmp_path / "other.ledger").read == 1
    assert seeds == [("my%20story", "banel\nderas"), ("s1", "banel deras")]
    assert "1 field, expected 2" in (tmp_path / "my story.txt.quarantine.jsonl").read_text()


def test_find_takes_judgements_as_a_mapping(index: Path) -> None:
    known = {"s": {f"d{n}": 1 for n in range(0, 60, 9)}}
    report = package.find(index, {"s": "banel deras"}, judgements=known, until=7)
    assert (report.relevant, report.stopped) == (7, "7 relevant found")
    with pytest.raises(InputError, match="name none of the seeds: they are about 'd0'"):
        package.find(index, {"s": "banel deras"}, judgements={"d0": {"s": 1}})
    with pytest.raises(InputError, match="either a judge or"):
        package.find(index, ["x"])
    with pytest.raises(InputError, match="need `static`"):
        package.find(index, ["x"], judgements=known, per_seed=True)


def test_compare_is_the_command(tmp_path: Path) -> None:
    qrels, runs = {f"q{n}": {"a": 1} for n in range(9)}, []
    for name, second in (("x", 0), ("y", 4)):
        lines = [f"q{n} Q0 {d} 1 {1 + (d == 'a' or n >= second)} {name}\n" for n in range(9) for d in "ab"]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
        runs.append(tmp_path / name)
    (tmp_path / "q").write_text("".join(f"{q} 0 a 1\n" for q in qrels), encoding="utf-8")
    said = json.loads(
        linker("compare", tmp_path / "q", *runs, "--samples", "500", "--seed", "3", "--json").stdout
    )
    assert package.compare(qrels, runs, samples=500, seed=3).to_dict() == said


def test_calibrate_needs_queries_or_a_ledger(index: Path, tmp_path: Path) -> None:
    for given in ({}, {"queries": {"q": "x"}}, {"queries": {"q": "x"}, "qrels": {}, "ledger": "l"}):
        with pytest.raises(InputError, match="give either"):
            package.calibrate(index, **given)
    with pytest.raises(InputError, match="is not a file"):
        package.calibrate(index, ledger=tmp_path / "none")


def test_calibrate_takes_values(index: Path) -> None:
    with Engine.open(index) as engine:
        queries = {f"d{n}": engine.document(f"d{n}").title for n in range(50)}
        fitted = package.calibrate(engine, queries, {f"d{n}": {f"d{n}": 1} for n in range(50)}, dev_share=0)
        assert engine.calibration is not None
        assert engine.calibration.fingerprint == fitted.fingerprint
        assert engine.search("banel").probabilities is not None


def test_train_takes_overrides_as_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.train=PATH"):
        package.train("ast", tmp_path / "m", overrides={"data.queries": 'a"b', "data.documents": tmp_path})
    with pytest.raises(ConfigError, match="did you mean ast"):
        package.train("asd")


def test_nothing_is_printed_without_a_handler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    package.link(*pages(tmp_path), "hapax")
    assert capfd.readouterr() == ("", "")
    code = "from linker.base.logs import logger; logger.warning('nobody hears this')"  # pytest itself adds a handler
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_where_there_is_no_terminal_progress_is_logged(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0)
    with progress.bar(3_000, "training", "steps") as shown:
        shown.set_postfix_str("loss 0.500")
        shown.update(2_000)
    with progress.bar(0, "encoding") as silent:
        silent.update(5)
    assert log == ["training: 2,000 of 3,000 steps, loss 0.500"]
    monkeypatch.setattr(progress, "EVERY", 3600)
    with progress.bar(None, "indexing") as shown:
        shown.update(1)
    assert len(log) == 1


def test_listeners_hear_their_own_thread_alone() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(name: str) -> list[str]:
        heard: list[str] = []
        with progress.listening(lambda what, *_: heard.append(what)), progress.bar(2, name) as shown:
            for _ in range(2):
                barrier.wait(10)
                shown.update(1)
        return heard

    from threading import Barrier

    barrier = Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, "ab")) == [["a", "a"], ["b", "b"]]


def test_what_is_logged_can_be_shown_and_encoded_and_is_shown_once(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frameworks such as MCP's add a handler to the root logger, which must not repeat the lines."""
    others = Kept()
    monkeypatch.setattr(logging.getLogger(), "handlers", [others])
    logger.info("reads %s", "in\udcff\x1b[31m\u202eput")
    (message,) = log
    assert not others.lines
    assert message == "reads in\ufffd\u241b[31m\ufffdput"
