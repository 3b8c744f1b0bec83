"""`linker serve` as a command: its output, how it ends, and its errors."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.helpers import linker
from tests.server.page.chromium import Server, served


def test_it_prints_its_address_and_ends_in_peace_and_when_killed_leaves_no_lock(folder: Path) -> None:
    server = Server(folder)
    urllib.request.urlopen(server.address + "/p/floods/judge").close()
    server.kill()
    with served(folder) as again:
        assert again.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(again.address + "/p/floods/judge") as answer:
            assert answer.status == 200
        assert (again.end(), again.errors) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc")
def test_an_index_is_served_with_its_ledger_and_learner_is_loaded_before_anybody_asks(folder: Path) -> None:
    with served(folder / "floods" / "index") as server:
        with urllib.request.urlopen(server.address + "/p/index/judge") as answer:
            assert b'name="name"' in answer.read()  # the page first asks for the reviewer's name
        loaded, end = Path(f"/proc/{server.pid}/maps"), time.monotonic() + 120
        while "_liblinear" not in loaded.read_text(encoding="utf-8"):  # the part loaded last
            assert time.monotonic() < end
            time.sleep(0.1)
        assert (server.end(), server.errors) == (0, "")
    assert (folder / "floods" / "index.review.sqlite").exists()


def test_mistakes_are_one_line(folder: Path, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        process = linker("serve", folder, "--port", str(listener.getsockname()[1]), check=1)
    assert "--port" in process.stderr
    assert process.stderr.count("\n") == 1
    process = linker("serve", folder, "--host", "0.0.0.0", check=1)
    assert "--token-file" in process.stderr
    assert process.stdout == ""
    (tmp_path / "news.csv").write_text("id,text\n")
    assert "is a file" in linker("serve", tmp_path / "news.csv", check=1).stderr


# Each library is missing in a fork of its own, so that the command line is loaded once.
MISSING = """
import os, sys
from linker.cli import main
sys.argv, libraries = ["linker", "serve", "x", "--port", "0"], sys.argv[1:]
for library in libraries:
    if not os.fork():
        sys.modules[library] = None
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


def test_without_the_extra_one_line_names_it(tmp_path: Path) -> None:
    libraries = ("fastapi", "uvicorn", "jinja2", "babel", "python_multipart")
    command = [sys.executable, "-c", MISSING, *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.stdout.split() == ["1"] * len(libraries), done.stderr
    assert done.stderr.count("[serve]") == done.stderr.count("\n") == len(libraries), done.stderr
