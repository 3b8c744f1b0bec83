"""`linker search --server` against a real server: it prints the same as a search of the directory."""

import contextlib
import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import uvicorn

from indexes.hybrid import Answer
from indexes.interface import BackendUnavailableError, Hits
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.cli.search_output import show
from linker.corpora import Query
from linker.encoders import opened
from linker.engine.client import Server
from linker.engine.engine import Engine
from linker.scoring.probability import folder
from linker.server.api import logs
from linker.server.api.app import service_app
from linker.server.config import ServeConfig
from tests.helpers import HashEncoder, linker
from tests.scoring.ranking.synthetic import documents

TOKEN = "reader-0123456789"
CASES = (
    ["plain", "banel kiras dedom"],
    ["plain", "banel kiras dedom", "--json", "-k", "3"],
    ["plain", "banel kiras dedom", "--mode", "dense", "-k", "2"],
    ["plain", "no-such-word", "--mode", "bm25"],
    ["plain", "banel", "--score", "0.02", "--json"],
    ["plain", "banel", "--where", "date>=2020-01-10", "--where", "date<2020-01-20", "--json"],
    ["plain", "--queries", "QUERIES"],
    ["plain", "--queries", "QUERIES", "--json", "-k", "4", "--mode", "bm25"],
    ["calibrated", "banel kiras dedom"],
    ["calibrated", "banel kiras dedom", "--json"],
    ["calibrated", "--queries", "QUERIES", "--json", "--threshold", "0.3"],
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two indexes, one of them calibrated, a file of queries, and an encoder in place of the one they name."""
    root, encoder = tmp_path_factory.mktemp("client"), HashEncoder()
    texts = [d.text for d in documents()]
    for name in ("plain", "calibrated"):
        with Writer.create(
            root / name, Manifest("flat", encoder=EncoderRecord("hash", encoder.fingerprint, 16))
        ) as w:
            w.add(documents(), encoder.encode(texts))
            w.commit()
    asked = [Query(f"q{n}", " ".join(text.split()[: 2 + n % 5])) for n, text in enumerate(texts[:200])]
    with Engine(root / "calibrated", encoder=encoder) as engine:
        judged = {q.id: {d.id: 1.0} for q, d in zip(asked, documents(), strict=False)}
        calibration = engine.calibrate(asked, judged)
        folder.save(calibration, root / "calibration")
        engine.store_calibration(root / "calibration")
    lines = (json.dumps({"_id": q.id, "text": q.text}) + "\n" for q in asked[:15])
    (root / "queries.jsonl").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened, "load_encoder", lambda name, **_: encoder)
        patch.setattr(logs.log, "disabled", True)  # here the server shares stderr with the commands
        yield root


@contextlib.contextmanager
def serving(config: ServeConfig) -> Iterator[str]:
    """Serve in a thread of this process and give the address."""
    server = uvicorn.Server(uvicorn.Config(service_app(config), log_config=None, access_log=False))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # clients that connect before the server accepts will wait
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


@pytest.fixture(scope="module")
def url(root: Path) -> Iterator[str]:
    tokens = root / "tokens"
    tokens.write_text(f"{TOKEN} read reader\n")
    tokens.chmod(0o600)
    with serving(ServeConfig.of([root / "plain", root / "calibrated"], token_file=tokens, page=False)) as url:
        yield url


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKER_TOKEN", TOKEN)


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_it_prints_what_a_search_of_the_directory_prints(root: Path, url: str, case: list[str]) -> None:
    name, *options = [str(root / "queries.jsonl") if part == "QUERIES" else part for part in case]
    direct = linker("search", root / name, *options)
    remote = linker("search", root / name, *options, "--server", url)
    assert (remote.stdout, remote.stderr) == (direct.stdout, direct.stderr)


@pytest.mark.usefixtures("signed_in")
def test_more_texts_than_one_request_takes_are_asked_in_parts(root: Path, url: str) -> None:
    texts = [d.text.split()[0] for d in documents()][:300]
    answer = Server.of(url).search(texts, 2, index="plain", documents=False)
    with Engine.open(root / "plain") as engine:
        alone = engine.search(texts, 2)
    for mine, theirs in zip(answer.hits, alone.hits, strict=True):
        assert mine.ids == theirs.ids
        np.testing.assert_array_equal(mine.scores, theirs.scores)


@pytest.mark.usefixtures("signed_in")
def test_what_cannot_be_asked_is_refused_in_a_line(root: Path, url: str) -> None:
    def said(index: str, *options: str | Path, address: str = url, status: int = 1) -> str:
        return linker("search", index, "banel", *options, "--server", address, check=status).stderr

    assert "names no index: choose one of calibrated, plain" in said("-")
    assert "there is no index 'elsewhere'" in said("elsewhere")
    for option, value in (("--k1", "0"), ("--encoder", "x"), ("--precision", "0.9"), ("--depth", "7")):
        assert f"a server does not accept {option}" in said("plain", option, value, status=2)
    alone = linker("search", root / "plain", "banel", "--token-file", root / "tokens", check=2)
    assert "--server" in alone.stderr
    for address in ("ftp://127.0.0.1", "http://", "http://h:port", "http://u:p@h", "http://h/?q=1"):
        assert "is not an address such as http" in said("-", address=address)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = said("-", address=f"127.0.0.1:{free.getsockname()[1]}")
    assert "does not answer: Connection refused" in nobody
    assert nobody.count("\n") == 1


def test_a_token_file_goes_before_the_environment(
    root: Path, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LINKER_TOKEN", "another-0123456789")
    ask = ("search", "plain", "banel", "--server", url)
    assert "the token is not known; name its file with --token-file" in linker(*ask, check=1).stderr
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert linker(*ask, "--token-file", tmp_path / "token").stdout


@pytest.mark.parametrize("content", ["", "two tokens", "tök"])
def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        Server.of("http://127.0.0.1:1", tmp_path / "token")
    assert str(tmp_path / "token") in str(refused.value)
    assert not content or content not in str(refused.value)
    with pytest.raises(InputError, match="cannot read the token"):
        Server.of("http://127.0.0.1:1", tmp_path / "none")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b"<html>", "this is not the API of `linker serve --api` (HTTP status 404)"),
        (200, b"[]", "this is not the API"),
        (200, b"{}", "a response that this version cannot read"),
        (302, b"", "this is not the API"),
    ],
)
def test_another_kind_of_server_is_recognised(status: int, body: bytes, said: str) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            # must not be followed: the token would go there
            self.send_header("location", "http://127.0.0.1:1/")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        process = linker("search", "-", "banel", "--server", f"http://127.0.0.1:{other.server_port}", check=1)
        other.shutdown()
    assert said in process.stderr


def test_a_run_is_not_made_of_degraded_answers(capsys: pytest.CaptureFixture[str]) -> None:
    hits = Hits(("a",), np.array([1.0], dtype=np.float32))
    degraded = Answer([hits], "dense", "bm25 unavailable: gone")
    run = ("linker", None, None)
    with pytest.raises(BackendUnavailableError, match=r"gone; .*--on-failure degrade"):
        show(lambda _: degraded, None, [("q", "rain")], run, as_json=False, whole=True)
    assert not capsys.readouterr().out
    show(lambda _: degraded, None, [("q", "rain")], run, as_json=False, whole=False)
    assert capsys.readouterr().out.startswith("q Q0 a 1")


@pytest.mark.usefixtures("signed_in")
def test_neither_torch_nor_an_index_is_loaded(url: str) -> None:
    code = (
        "import sys; sys.argv = ['linker', 'search', 'plain', 'banel', '--server', sys.argv[1]]\n"
        "from linker.cli import main\nmain()\n"
        "loaded = {'torch', 'faiss', 'scipy', 'linker.engine.engine', 'httpx', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    command = [sys.executable, "-c", code, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
