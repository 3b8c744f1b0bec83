"""Every command with every bad file: one line that names the file, exit status 1 or 2, never a traceback."""

import contextlib
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import linker

DEEP = "[" * 3000
GOOD_QRELS = "q1 0 a 1\nq2 0 b 1\n"
GOOD_RUN = "q1 Q0 a 1 2.0 r\nq2 Q0 b 1 1.0 r\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder of good files, and an index."""
    folder = tmp_path_factory.mktemp("hostile")
    corpus = folder / "good.jsonl"
    corpus.write_text('{"id": "a", "text": "rain"}\n{"id": "b", "text": "snow"}\n', encoding="utf-8")
    linker("index", "build", corpus, "--out", folder / "index")
    (folder / "qrels").write_text(GOOD_QRELS, encoding="utf-8")
    (folder / "run").write_text(GOOD_RUN, encoding="utf-8")
    (folder / "links.tsv").write_text("0 0\n", encoding="utf-8")
    (folder / "judgements.csv").write_text("seed,id,verdict\na,b,yes\n", encoding="utf-8")
    linker("review", "import", folder / "review.sqlite", folder / "judgements.csv")
    np.save(folder / "good.npy", np.ones((1, 2), np.float32))
    pair = json.dumps({"_id": "p", "text1": "word " * 12, "text2": "word " * 12, "overall": 1, "score": 1})
    (folder / "pairs.jsonl").write_text(pair, encoding="utf-8")
    return folder


def bad_file(folder: Path, kind: str) -> Path:
    """Make an input that no command can use."""
    contents = {
        "blank": b"\n \n",
        "binary": bytes(range(256)) * 20,
        "nul": b"\0" * 5000,
        "one line": b"x" * (1 << 20),
        "deep": DEEP.encode(),
        "deep objects": b'{"a":' * 3000,
        "cut gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb",
    }
    if kind in contents:
        path = folder / "input"
        path.write_bytes(contents[kind])
        return path
    if kind == "strange name":
        path = Path(os.fsdecode(os.fsencode(folder) + b"/in\n\xff\x1b[31mput"))
        path.write_bytes(b"\xff\n")
        return path
    if kind == "folder":
        path = folder / "folder"
        path.mkdir()
        return path
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(folder):  # socket paths must be short
            made.bind("socket")
        return folder / "socket"
    if kind == "loop":
        (folder / "loop").symlink_to(folder / "loop")
        return folder / "loop"
    return {"zero": Path("/dev/zero"), "null": Path("/dev/null"), "missing": folder / "missing",
            "long name": folder / ("x" * 300)}[kind]  # fmt: skip


KINDS = ("blank", "binary", "nul", "one line", "deep", "deep objects", "cut gzip", "strange name", "folder", "socket",
         "loop", "zero", "null", "missing", "long name")  # fmt: skip
COMMANDS = {
    "search index": "search {bad} --text x",
    "search queries": "search {place}/index --queries {bad}",
    "search encoder": "search {place}/index --text x --mode dense --encoder {bad}",
    "search rerank": "search {place}/index --text x --rerank {bad}",
    "find index": "find {bad} --seeds {good}",
    "find seeds": "find {place}/index --seeds {bad} --ledger {new}",
    "find judgements": "find {place}/index --seeds {good} --judgements {bad} --ledger {new}",
    "find ledger": "find {place}/index --seeds {good} --ledger {bad} --judgements {place}/qrels",
    "link source": "link {bad} {good} --method hapax --languages fr-en --out {new}",
    "link target": "link {good} {bad} --method hapax --languages fr-en --out {new}",
    "link dictionary": "link {good} {good} --method dictionary --languages fr-en --out {new} --dictionary {bad}",
    "link train": "link {good} {good} --method hapax --languages fr-en --out {new} --train {bad}",
    "link pivot": "link {good} {good} --method pivot --languages fr-en --out {new} --pivot {bad} "
    "--pivot-links {place}/qrels",
    "link encoder": "link {good} {good} --method encoder --languages fr-en --out {new} --encoder {bad}",
    "train": "train {bad}",
    "plot": "plot {bad}",
    "encode model": "encode {bad} {good} --out {new}",
    "encode texts": "encode no-such-model {bad} --out {new}",
    "explain": "explain {bad} --text a --text b",
    "evaluate qrels": "evaluate {bad} {place}/run",
    "evaluate run": "evaluate {place}/qrels {bad}",
    "compare qrels": "compare {bad} {place}/run {place}/run",
    "compare run": "compare {place}/qrels {place}/run {bad}",
    "evaluate-pairs articles": "evaluate-pairs {bad} {place}/good.npy {place}/links.tsv",
    "evaluate-pairs tweets": "evaluate-pairs {place}/good.npy {bad} {place}/links.tsv",
    "evaluate-pairs links": "evaluate-pairs {place}/good.npy {place}/good.npy {bad}",
    "evaluate-pairs ids": "evaluate-pairs {place}/good.npy {place}/good.npy {place}/links.tsv --article-ids {bad}",
    "index build": "index build {bad} --out {new}",
    "index build encoder": "index build {good} --out {new} --encoder {bad}",
    "index build out": "index build {good} --out {bad}/x",
    "index add index": "index add {bad} {good}",
    "index add": "index add {place}/index {bad}",
    "index delete index": "index delete {bad} a",
    "index delete ids": "index delete {place}/index --ids {bad}",
    "index compact": "index compact {bad}",
    "index drop": "index drop {bad} --yes",
    "index info": "index info {bad}",
    "index verify": "index verify {bad}",
    "index join": "index join {new} {bad}",
    "index tune index": "index tune {bad} --queries {good} --qrels {place}/qrels",
    "index tune queries": "index tune {place}/index --queries {bad} --qrels {place}/qrels",
    "index tune qrels": "index tune {place}/index --queries {good} --qrels {bad}",
    "index tune recall": "index tune {bad} --recall 0.9",
    "index rebuild": "index rebuild {bad}",
    "bucc prepare": "bucc prepare {bad} {good} --out {new} --languages fr-en",
    "bucc prepare target": "bucc prepare {good} {bad} --out {new} --languages fr-en",
    "bucc prepare links": "bucc prepare {good} {good} --out {new} --languages fr-en --links {bad}",
    "bucc evaluate": "bucc evaluate {bad} --run {place}/run",
    "bucc evaluate run": "bucc evaluate {place}/qrels --run {bad}",
    "similarity train": "similarity train {bad} --out {new}",
    "similarity train backbone": "similarity train {place}/pairs.jsonl --out {new} --backbone {bad}",
    "similarity train ner": "similarity train {place}/pairs.jsonl --out {new} --ner {bad}",
    "similarity predict model": "similarity predict {bad} {place}/pairs.jsonl",
    "similarity evaluate": "similarity evaluate {bad} {place}/pairs.jsonl",
    "similarity evaluate predictions": "similarity evaluate {place}/pairs.jsonl {bad}",
    "similarity calibrate": "similarity calibrate {bad} {place}/pairs.jsonl",
    "similarity calibrate predictions": "similarity calibrate {place}/pairs.jsonl {bad}",
    "review status": "review status {bad}",
    "review export": "review export {bad} {new}.csv",
    "review export index": "review export {place}/review.sqlite {new}.csv --index {bad}",
    "review import": "review import {new} {bad}",
    "review import ledger": "review import {bad} {place}/judgements.csv",
    "review agreement": "review agreement {bad}",
    "review simulate": "review simulate {bad} {place}/qrels",
    "review simulate qrels": "review simulate {place}/index {bad}",
    "sts train": "sts train {bad} --out {new}",
    "sts train backbone": "sts train {place}/pairs.jsonl --out {new} --backbone {bad}",
    "sts train init": "sts train {place}/pairs.jsonl --out {new} --init {bad}",
    "sts train dev": "sts train {place}/pairs.jsonl --out {new} --dev {bad}",
    "sts predict": "sts predict {bad} {place}/pairs.jsonl",
    "sts evaluate": "sts evaluate {bad} {place}/pairs.jsonl",
}  # fmt: skip


FEW = ("binary", "deep", "strange name", "zero", "missing")
# One command of each reader of files gets every kind, the others the commonest.
READERS = (
    "search index", "search queries", "find seeds", "find judgements", "find ledger", "link dictionary",
    "evaluate qrels", "evaluate run", "evaluate-pairs articles", "evaluate-pairs links", "index build",
    "index build out", "index delete ids", "bucc prepare", "review import",
)  # fmt: skip
# These accept a missing file or an empty folder.
CREATED = {
    ("find ledger", "missing"),
    # A ledger's first judgement as a power cut may leave it.
    ("find ledger", "nul"),
    ("review import ledger", "missing"),
    ("index build out", "folder"),
    ("index build out", "missing"),
    ("similarity train ner", "strange name"),
}
CASES = [
    (command, kind)
    for command in COMMANDS
    for kind in (KINDS if command in READERS else FEW)
    if (command, kind) not in CREATED
]


@pytest.mark.parametrize(("command", "kind"), CASES)
def test_a_bad_file_ends_with_one_line(place: Path, tmp_path: Path, command: str, kind: str) -> None:
    names = {
        "bad": bad_file(tmp_path, kind), "place": place, "good": place / "good.jsonl",
        "new": tmp_path / "new",
    }  # fmt: skip
    done = linker(*[part.format(**names) for part in COMMANDS[command].split()], check=None)
    assert done.returncode in (1, 2), done
    assert "error" in done.stderr.lower()


def test_a_path_that_is_no_utf8_is_an_ordinary_path(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff\nname"))
    odd.mkdir()
    (odd / "c.jsonl").write_text('{"id": "a", "text": "rain"}\n' * 2, encoding="utf-8")
    done = linker("index", "build", odd / "c.jsonl", "--out", odd / "index")
    assert "odd�\nname/index: 1 document added" in done.stdout
    (kept,) = (odd / "index" / "quarantine").glob("*.jsonl")
    assert json.loads(kept.read_text(encoding="utf-8"))["file"].endswith("odd\\xff\nname/c.jsonl")
    find = ("find", odd / "index", "--seeds", odd / "c.jsonl", "--ledger", odd / "ledger", "--json")
    (odd / "c.jsonl").write_text('{"id": "a", "text": "rain"}\n', encoding="utf-8")
    assert json.loads(linker(*find, stdin="y\n").stdout)["ledger"].endswith("odd\\xff\nname/ledger")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("evaluate {place}/qrels {place}/run -m P." + "9" * 5000, "a rank must be a positive integer"),
        ("index rebuild {place}/index", "is on Elasticsearch"),
        ("index build {good} --out {new} --backend elastic --url http://[", "cannot use the address"),
        ("index build {good} --out {new} --backend elastic --url http://a:b", "cannot use the address"),
        ("sts train {place}/pairs.jsonl --out {new} --set epochs=" + DEEP, "nested too deeply"),
        ("sts train {place}/pairs.jsonl --out {new} --set epochs=" + "9" * 5000, "epochs"),
    ],
)  # fmt: skip
def test_a_bad_value_ends_with_one_line(place: Path, tmp_path: Path, arguments: str, expected: str) -> None:
    done = linker(
        *arguments.format(place=place, good=place / "good.jsonl", new=tmp_path / "new").split(), check=1
    )
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_paths_and_figures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train.toml"
    path.write_text("a = " + DEEP, encoding="utf-8")
    assert f"cannot read {path}: its brackets are nested too deeply" in linker("train", path, check=1).stderr
    assert "nonnumeric port" in linker("doctor", "--elasticsearch", "http://a:b").stdout


@pytest.mark.parametrize("content", [DEEP.encode(), b"\xff\xfe\n", b"[1]\n7\n"])
def test_damaged_figures_of_a_training_are_no_traceback(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "metrics.jsonl").write_bytes(content)
    assert "holds no figures" in linker("plot", tmp_path, check=1).stderr
