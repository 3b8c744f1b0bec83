"""The content of documents never reaches a terminal, a page or a spreadsheet as a command."""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.base.printable import json_text, on_one_line, printable, spreadsheet_cell, without_credentials
from linker.evaluation import tables
from tests.helpers import linker

ROOT = Path(__file__).parents[1]
ATTACKS = ("\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "\x90dcs\x9c", "abc\rxyz", "back\b\b\bspace", "\x7f",
           "\u202eevil\u202c", "\u2066iso\u2069", "\u200e\u200f\u061c", "a\u2028b\u2029c", "\u0085")  # fmt: skip
RIGHT_TO_LEFT = "שלום عربي"
NEVER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ANY_TEXT = st.text(st.characters() | st.sampled_from("".join(ATTACKS)) | st.characters(categories=["Cs"]))


@settings(deadline=None, max_examples=200)
@given(ANY_TEXT)
def test_printable_text_holds_no_command_and_keeps_its_length(text: str) -> None:
    shown = printable(text)
    assert not NEVER.search(shown)
    assert len(shown) == len(text)
    shown.encode()
    harmless = [c for c in text if not NEVER.match(c)]
    assert all(c in shown for c in harmless)
    if len(harmless) == len(text):
        assert shown == text
    line = on_one_line(text)
    assert not NEVER.search(line)
    assert "\n" not in line
    assert "\t" not in line


def test_what_stands_for_a_control_character_or_a_formula() -> None:
    assert printable("a\x1b[0m\x00\x7f\x9b\u202e\udcff") == "a␛[0m␀␡���"
    assert printable(f"{RIGHT_TO_LEFT}\té\n") == f"{RIGHT_TO_LEFT}\té\n"
    assert on_one_line("a\r\n\tb\u2028c\x1b") == "a b c␛"
    assert [spreadsheet_cell(t) for t in ("=1+1", "-1", "\t=1", "a=b", "12")] == [
        "'=1+1", "'-1", "' =1", "a=b", "12"
    ]  # fmt: skip


@settings(deadline=None, max_examples=50)
@given(
    st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
)
def test_json_is_escaped_and_means_the_same(value: object) -> None:
    text = json_text(value)
    assert not NEVER.search(text)
    assert json.loads(text) == value
    assert orjson.loads(text) == value


@settings(deadline=None, max_examples=200)
@given(ANY_TEXT)
def test_a_spreadsheet_never_computes_a_cell(text: str) -> None:
    cell = spreadsheet_cell(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert not NEVER.search(cell)


def test_an_address_in_a_message_has_no_password() -> None:
    for address, shown in (
        ("elastic+https://ana:geheim@host:9200/news", "elastic+https://…@host:9200/news"),
        ("OpenSearch+http:/ana:geh/e@im@host/news", "OpenSearch+http:/…@host/news"),  # as a `Path` writes it
        ("https://ana@host/x, https://b:geheim@host", "https://…@host/x, https://…@host"),
        ("https://host/@ana", "https://host/@ana"), ("write to ana@host", "write to ana@host"),
    ):  # fmt: skip
        assert without_credentials(f"cannot read {address}: why") == f"cannot read {shown}: why"


NAME = "r|u`n <b> & $x$ %\\ [a](b) _i_ a_b\n=1\x1b"


def test_tables_show_a_name_as_it_is() -> None:
    head, _, row = tables.markdown([["run", "m"], [NAME, "-1.5"]]).splitlines()
    assert row.startswith("| r\\|u\\`n &lt;b&gt; &amp; \\$x\\$ %\\\\ \\[a\\](b) \\_i\\_ a_b =1␛ | -1.5")
    assert head.count("|") == 3
    lines = tables.latex([["run", "m", "n"], ["[1] *<>|_&%$#{}~^\\\n", "x", "-1.5"]]).splitlines()
    assert lines[4] == (
        "{[}1] {*}\\textless{}\\textgreater{}\\textbar{}\\_\\&\\%\\$\\#\\{\\}\\textasciitilde{}"
        "\\textasciicircum{}\\textbackslash{}  & x & -1.5 \\\\"
    )
    page = tables.html([["a", "b"], ["<script>\n\x1b", '"&']])
    assert "<td>&lt;script&gt; ␛</td><td>&quot;&amp;</td>" in page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an index with every attack in its documents, titles and metadata; and such seeds."""
    folder = tmp_path_factory.mktemp("attacks")
    lines = [
        json.dumps({"id": f"d{i}", "text": f"rain {attack} {RIGHT_TO_LEFT}", "title": attack, "at": attack})
        for i, attack in enumerate(ATTACKS)
    ]
    (folder / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    seed = {"id": "s", "text": "rain " + " ".join(ATTACKS)}
    (folder / "seeds.jsonl").write_text(json.dumps(seed), encoding="utf-8")
    (folder / "runs").write_text("q1\x1b[2J Q0 a 1 1 \x1b]0;x\x07name\n", encoding="utf-8")
    (folder / "qrels").write_text("q1\x1b[2J 0 a 1\nq\u202e 0 a 1\n", encoding="utf-8")
    linker("index", "build", folder / "c.jsonl", "--out", folder / "index")
    return folder


def on_a_terminal(*arguments: str | Path, typed: bytes = b"") -> str:
    """Run the command with stdin, stdout and stderr on a pseudo-terminal; return the terminal's output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "linker", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT):
        os.close(theirs)
        if typed:
            os.write(ours, typed)
        received = b""
        with contextlib.suppress(OSError):  # EIO: the process has ended
            while block := os.read(ours, 1 << 16):
                received += block
        os.close(ours)
    return received.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("arguments", "typed", "expected"),
    [
        ("search {f}/index --text rain -k 20", b"", "␛[2J"),
        ("search {f}/index --text rain -k 20 --json", b"", "\\u009b"),
        ("find {f}/index --seeds {f}/seeds.jsonl --static --ledger {new}", b"y\nn\nq\n", "stopped by"),
        ("evaluate {f}/qrels {f}/runs -q", b"", "␛[2J"),
        ("compare {f}/qrels {f}/runs {f}/runs", b"", "same"),
        ("search {f}/\x1b[2Jnone --text x", b"", "␛[2Jnone"),
        ("search --x\x1b[2J", b"", "No such option"),
        ("doctor http://ana:geheim@localhost/x", b"", "http://…@localhost/x"),
    ],
)
def test_nothing_raw_reaches_a_terminal(
    hostile: Path, tmp_path: Path, arguments: str, typed: bytes, expected: str
) -> None:
    command = [a.format(f=hostile, new=tmp_path / "ledger") for a in arguments.split(" ")]
    shown = on_a_terminal(*command, typed=typed)
    assert expected in shown
    assert not NEVER.search(shown), repr(NEVER.search(shown))
    assert "Traceback" not in shown


def test_what_is_not_a_terminal_gets_the_texts_as_they_are(hostile: Path) -> None:
    assert RIGHT_TO_LEFT in linker("search", hostile / "index", "--text", "rain").stdout
    assert "q1\x1b[2J" in linker("evaluate", hostile / "qrels", hostile / "runs", "-q").stdout
    found = json.loads(linker("search", hostile / "index", "--text", "rain", "-k", "20", "--json").stdout)
    assert {hit["title"] for hit in found["hits"]} == set(ATTACKS)


def test_a_terminal_that_is_not_utf8_gets_escapes(hostile: Path) -> None:
    command = [sys.executable, "-m", "linker", "search", str(hostile / "index"), "--text", "rain"]
    done = subprocess.run(
        command, capture_output=True, cwd=ROOT, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u05e9" in done.stdout


def test_a_progress_bar_still_moves_its_cursor() -> None:
    from linker.base.printable import PrintableStream, unguarded

    stream = io.StringIO()
    assert unguarded(PrintableStream(stream)) is stream
    assert unguarded(stream) is stream
