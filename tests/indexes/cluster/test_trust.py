"""Credentials reach only the servers that the user named; the attacker is a real, recording server."""

import base64
import dataclasses
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from indexes.cluster import trust as elastic_trust
from indexes.cluster.client import ElasticSettings, connect, remember
from indexes.cluster.index import ClusterIndex
from indexes.errors import IndexesError, UntrustedHostError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from linker.engine import Engine, building
from tests.helpers import HashEncoder, linker, write_corpus
from tests.indexes.cluster.recorder import Recorder, recording

Server = tuple[str, type[Recorder]]
EXPECTED = "Basic " + base64.b64encode(b"me:hush").decode()


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of trusted hosts, which does not exist yet; a user and a password are set."""
    monkeypatch.setenv("LINKER_ELASTIC_USER", "me")
    monkeypatch.setenv("LINKER_ELASTIC_PASSWORD", "hush")
    monkeypatch.delenv("LINKER_ELASTIC_URL", raising=False)
    monkeypatch.delenv("LINKER_TRUSTED_HOSTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "linker" / "trusted-hosts"


def index_naming(url: str, directory: Path) -> Path:
    """Make an index with one document whose manifest names an address, as an untrusted one may."""
    linker("index", "build", write_corpus(directory.with_suffix(".jsonl"), 3), "--out", directory)
    return name(url, directory)


def name(url: str, directory: Path) -> Path:
    named = {"urls": [url], "index": "news", "shards": 1, "replicas": 0}
    manifest = manifests.load(directory)
    files = {file: record for file, record in manifest.files.items() if not file.startswith("text/")}
    storage.replace_manifest(directory, dataclasses.replace(manifest, elastic=named, files=files))
    return directory


def test_no_command_sends_credentials_to_the_index_s_host(
    recorder: Server, hosts: Path, tmp_path: Path
) -> None:
    url, handler = recorder
    directory = index_naming(url, tmp_path / "index")
    more = write_corpus(tmp_path / "more.jsonl", 1, prefix="more")
    for command in (
        ("search", directory, "--text", "banel"),
        ("index", "add", directory, more),
        ("index", "delete", directory, "d1"),
        ("index", "compact", directory),
        ("index", "drop", directory, "--yes"),
        ("index", "verify", directory),
        ("index", "rebuild", directory),
    ):
        refused = linker(*command, check=1).stderr
        assert f"LINKER_ELASTIC_URL={url}" in refused
        assert str(hosts) in refused
        assert "hush" not in refused
    assert handler.shown == []
    assert not hosts.exists()


def test_hybrid_search_degrades_and_sends_nothing(
    recorder: Server, hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    corpus = write_corpus(tmp_path / "c.jsonl", 3)
    linker("index", "build", corpus, "--out", tmp_path / "index", "--encoder", "hash")
    directory = name(recorder[0], tmp_path / "index")
    answer = Engine(directory, encoder=HashEncoder()).search("banel", 3)
    assert answer.mode == "dense"
    assert "no credentials are sent there" in answer.degraded
    assert recorder[1].shown == []


@pytest.mark.parametrize("how", ["variable", "file", "home"])
def test_a_host_that_the_user_named_gets_them(
    recorder: Server, hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    url, handler = recorder
    if how == "variable":
        monkeypatch.setenv("LINKER_ELASTIC_URL", f"https://other:9200, {url}/")
    else:
        if how == "home":
            monkeypatch.delenv("XDG_CONFIG_HOME")
            monkeypatch.setenv("HOME", str(tmp_path))
            hosts = tmp_path / ".config" / "linker" / "trusted-hosts"
        hosts.parent.mkdir(parents=True)
        hosts.write_text(f"# mine\n\nhttps://other\n{url.upper()}\n", encoding="utf-8")
    done = linker("index", "verify", index_naming(url, tmp_path / "index"), check=None)
    assert "no credentials" not in done.stderr
    assert handler.shown
    assert set(handler.shown) == {EXPECTED}


def test_another_port_is_another_host(recorder: Server, hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_URL", "http://127.0.0.1:9,https://127.0.0.1,http://localhost")
    settings = ElasticSettings((recorder[0],), "news", named=False)
    with pytest.raises(UntrustedHostError):
        connect(settings)
    with pytest.raises(UntrustedHostError):  # one of several is enough
        connect(dataclasses.replace(settings, urls=("http://127.0.0.1:9", recorder[0])))


@pytest.mark.parametrize(("answer", "sent"), [("y", True), ("n", False)])
def test_terminal_is_asked_once(
    recorder: Server, hosts: Path, tmp_path: Path, answer: str, sent: bool
) -> None:
    url, handler = recorder
    directory = index_naming(url, tmp_path / "index")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "linker", "index", "verify", str(directory)]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        output = b""
        while b"[y/N]" not in output:
            output += os.read(ours, 1000)
        os.write(ours, f"{answer}\n".encode())
        try:
            process.wait(60)
        finally:
            process.kill()  # if it asks again, nothing responds
    os.close(ours)
    assert f"the index names {url}: send the credentials there?" in output.decode()
    assert set(handler.shown) == ({EXPECTED} if sent else set())
    assert hosts.exists() == sent
    if sent:
        assert hosts.read_text(encoding="utf-8") == f"{url}\n"
        assert stat.S_IMODE(hosts.stat().st_mode) == 0o600
        linker("index", "verify", directory, check=None)  # not asked again
        assert set(handler.shown) == {EXPECTED}


def test_what_the_caller_named_is_remembered_once(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = ("https://es1:9200", "https://ES1:9200/", "https://es2")
    remember(ElasticSettings(urls, "news", named=False))
    assert not hosts.exists()
    remember(ElasticSettings(urls, "news"))
    remember(ElasticSettings((*urls, "http://127.0.0.1:9200"), "news"))
    lines = ["https://es1:9200", "https://es2:443", "http://127.0.0.1:9200"]
    assert hosts.read_text(encoding="utf-8").splitlines() == lines
    connect(ElasticSettings(("https://ES1:9200", "https://es2"), "news", named=False)).close()
    monkeypatch.delenv("LINKER_ELASTIC_USER")
    remember(ElasticSettings(("https://es3",), "news"))  # without credentials, no trust is needed
    assert hosts.read_text(encoding="utf-8").splitlines() == lines


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_nothing_elsewhere(recorder: Server, hosts: Path, status: int) -> None:
    url, handler = recorder
    with recording() as (elsewhere, other):
        handler.status, handler.location = status, elsewhere
        store = ClusterIndex(ElasticSettings((url,), "news"))
        with pytest.raises(IndexesError):
            store.count()
        store.close()
    assert handler.shown == [EXPECTED]
    assert other.shown == []
    assert handler.paths == ["/news/_count"]  # nor are other nodes requested


@pytest.mark.parametrize(
    "url",
    ["http://es1:9200", "http://10.0.0.1:9200", "http://0.0.0.0:9200", "http://[::]:9200",
     "http://127.0.0.1.example:9200", "http://localhost.example:9200", "http://2130706433:9200"],
)  # fmt: skip
def test_plain_http_gets_credentials_on_loopback(
    hosts: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_URL", url)
    with pytest.raises(UntrustedHostError, match="plain http"):
        connect(ElasticSettings((url,), "news"))
    monkeypatch.delenv("LINKER_ELASTIC_USER")
    monkeypatch.setenv("LINKER_ELASTIC_API_KEY", "a2V5")
    with pytest.raises(UntrustedHostError, match="plain http"):
        connect(ElasticSettings(("https://es1", url), "news"))
    monkeypatch.delenv("LINKER_ELASTIC_API_KEY")
    connect(ElasticSettings((url,), "news")).close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_may_be_plain(hosts: Path, host: str) -> None:
    connect(ElasticSettings((f"http://{host}:9200",), "news")).close()


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9200\\@evil:9200", "http://127.0.0.1:9200@evil:9200", "http://127.0.0.1#@evil",
     "http://127.0.0.1:9200?@evil", "http://127.0.0.1:9200 evil", "http://evil\t:9200", "http://evil\n",
     "http://evil:9200:9200", "http://ｅvil", "http://evil:٩", "http://[::1]evil", "http://%31", "http:evil", "//evil",
     "http://evil:0", "http://evil:65536", "http://[:::]:9200"],
)  # fmt: skip
def test_an_address_that_two_readers_may_read_differently_is_refused(url: str) -> None:
    with pytest.raises(IndexesError):
        ElasticSettings.from_json({"urls": [url], "index": "news", "shards": 1, "replicas": 0})


def test_a_password_in_a_manifests_address_is_refused_and_not_shown(hosts: Path, tmp_path: Path) -> None:
    directory = index_naming("https://me:hush@es1:9200", tmp_path / "index")
    for command in (("search", directory, "--text", "banel"), ("index", "verify", directory)):
        refused = linker(*command, check=1).stderr
        assert "put them into LINKER_ELASTIC_USER and LINKER_ELASTIC_PASSWORD" in refused
        assert "hush" not in refused


def test_an_unusable_file_of_trusted_hosts_is_named(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts.parent.mkdir(parents=True)
    hosts.write_text("https://es1\nes2:9200\n", encoding="utf-8")
    with pytest.raises(IndexesError, match="trusted-hosts, entry 2: cannot use the address 'es2:9200'"):
        elastic_trust.trusted()
    hosts.write_bytes(b"\xff")
    with pytest.raises(IndexesError, match="cannot read the trusted hosts"):
        elastic_trust.trusted()
    hosts.unlink()
    monkeypatch.setenv("LINKER_TRUSTED_HOSTS", f"{os.devnull}/hosts")
    with pytest.raises(IndexesError, match="cannot read the trusted hosts"):
        elastic_trust.remember(["https://es1"])


def test_passwords_beyond_ascii_are_utf_8_and_what_is_no_text_is_named(
    recorder: Server, hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = recorder
    monkeypatch.setenv("LINKER_ELASTIC_PASSWORD", "hüsh ⚡")
    store = ClusterIndex(ElasticSettings((url,), "news"))
    store.count()
    store.close()
    assert handler.shown == ["Basic " + base64.b64encode("me:hüsh ⚡".encode()).decode()]
    for variable, value, match in (
        ("USER", "a:b", "contains a colon"),
        ("PASSWORD", "\udcff", "LINKER_ELASTIC_PASSWORD.*is not UTF-8"),
        ("API_KEY", "schlüssel", "no API key has"),
        ("API_KEY", "a\nX-Header: b", "no API key has"),
    ):
        with monkeypatch.context() as patch:
            if variable == "API_KEY":
                patch.delenv("LINKER_ELASTIC_USER")
            patch.setenv(f"LINKER_ELASTIC_{variable}", value)
            with pytest.raises(IndexesError, match=match):
                connect(ElasticSettings((url,), "news"))
    (tmp_path / "password").write_bytes(b"\xff")
    monkeypatch.setenv("LINKER_ELASTIC_PASSWORD_FILE", str(tmp_path / "password"))
    with pytest.raises(IndexesError, match="PASSWORD_FILE names, is not UTF-8"):
        connect(ElasticSettings((url,), "news"))
