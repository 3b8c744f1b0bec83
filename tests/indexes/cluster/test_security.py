"""A server with TLS, users and API keys: each login works, wrong ones are refused, and no secret is shown."""

import base64
import hashlib
import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.store import manifest as manifests
from tests import elastic_server
from tests.elastic_server import Node
from tests.helpers import ROOT, linker, write_corpus

pytestmark = pytest.mark.slow

USER, PASSWORD = "keeper", "correct hörse ⚡"


def hashed(password: str) -> str:
    """The server's own form of a PBKDF2 hash."""
    salt = b"0123456789abcdef0123456789abcdef"
    key = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 10_000, 32)
    return "{PBKDF2}10000$" + "$".join(base64.b64encode(part).decode() for part in (salt, key))


@pytest.fixture(scope="module")
def secured() -> Iterator[tuple[Node, Path]]:
    """A server that requires a password over TLS, and the file with the authority to trust."""
    elastic_server.require()
    with elastic_server.folder() as folder:
        certificate, key = folder / "ca.pem", folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        node = Node(
            folder / "secured",
            settings={
                "discovery.type": "single-node", "xpack.security.enabled": True,
                "xpack.security.authc.password_hashing.algorithm": "pbkdf2",
                "xpack.security.http.ssl.enabled": True, "xpack.security.http.ssl.key": "key.pem",
                "xpack.security.http.ssl.certificate": "ca.pem",
            },
            files={
                "users": f"{USER}:{hashed(PASSWORD)}\n", "users_roles": f"superuser:{USER}\n",
                "key.pem": key.read_text(), "ca.pem": certificate.read_text(),
            },
            headers={"Authorization": f"Basic {login}"},
            trust=ssl.create_default_context(cafile=str(certificate)),
        )  # fmt: skip
        try:
            node.start()
            yield node, certificate
        finally:
            node.stop()


def test_logins(secured: tuple[Node, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, authority = secured
    corpus, out = write_corpus(tmp_path / "c.jsonl", 20), tmp_path / "index"
    build = ("index", "build", corpus, "--out", out, "--backend", "elastic", "--url", node.url)
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    monkeypatch.setenv("LINKER_TRUSTED_HOSTS", str(tmp_path / "hosts"))
    assert "does not answer" in linker(*build, check=1).stderr  # an unknown authority
    monkeypatch.setenv("LINKER_ELASTIC_CA", str(authority))
    assert "refuses access (401)" in linker(*build, check=1).stderr
    monkeypatch.setenv("LINKER_ELASTIC_USER", USER)
    monkeypatch.setenv("LINKER_ELASTIC_PASSWORD", "a wrong one")
    assert "refuses access (401)" in linker(*build, check=1).stderr
    assert not out.exists()
    assert not (tmp_path / "hosts").exists()
    (tmp_path / "password").write_text(PASSWORD + "\n", encoding="utf-8")
    monkeypatch.setenv("LINKER_ELASTIC_PASSWORD_FILE", str(tmp_path / "password"))
    done = [linker(*build), linker("index", "verify", out)]
    settings = ElasticSettings.from_json(manifests.load(out).elastic)
    assert (tmp_path / "hosts").read_text(encoding="utf-8") == f"{node.url}\n"

    stem = settings.index.partition(".")[0]
    key = _key(settings, {"cluster": ["monitor"], "index": [{"names": [f"{stem}*"], "privileges": ["all"]}]})
    reader = _key(
        settings,
        {"index": [{"names": [f"{stem}*"], "privileges": ["read", "view_index_metadata"]}]},
    )
    monkeypatch.delenv("LINKER_ELASTIC_USER")
    monkeypatch.setenv("LINKER_ELASTIC_API_KEY", key)
    done.append(linker("index", "add", out, write_corpus(tmp_path / "m.jsonl", 5, prefix="m")))
    done.append(linker("index", "rebuild", out))
    monkeypatch.setenv("LINKER_ELASTIC_API_KEY", reader)
    done.append(linker("search", out, "--text", "banel deras kisen", "-k", "3"))
    assert len(done[-1].stdout.splitlines()) == 3
    refused = linker("index", "delete", out, "m1", check=1)
    assert "refuses access (403)" in refused.stderr
    (tmp_path / "hosts").unlink()
    assert "no credentials are sent there" in linker("index", "verify", out, check=1).stderr
    for part in done:
        for secret in (PASSWORD, key, reader):
            assert secret not in part.stdout + part.stderr
    assert PASSWORD not in json.dumps(dict(manifests.load(out).elastic))
    for path in out.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes()


def _key(settings: ElasticSettings, role: dict[str, object]) -> str:
    store = ClusterIndex(settings)
    try:
        return str(
            store.client.security.create_api_key(name="key", role_descriptors={"own": role})["encoded"]
        )
    finally:
        store.close()


def test_the_user_of_compose_uses_indexes_and_nothing_else(
    secured: tuple[Node, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of compose.yaml, with this server's address and administrator."""
    yaml = pytest.importorskip("yaml")
    node, authority = secured
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    (script,) = services["user"]["command"]
    for old, new in (("$$", "$"), ("elastic:$", f"{USER}:$"), ("http://elasticsearch:9200", node.url)):
        script = script.replace(old, new)
    secret = "0123456789abcdef"
    environment = {"ELASTIC_PASSWORD": PASSWORD, "CURL_CA_BUNDLE": str(authority), "PATH": os.environ["PATH"]}

    def run(password: str) -> subprocess.CompletedProcess[str]:
        variables = environment | {"LINKER_PASSWORD": password}
        return subprocess.run(
            ["bash", "-ceu", script], env=variables, capture_output=True, text=True, check=False
        )

    assert "set LINKER_PASSWORD" in run("").stderr
    process = run(secret)
    assert process.returncode == 0, process.stderr
    for name, value in {
        "LINKER_TRUSTED_HOSTS": tmp_path / "hosts", "LINKER_ELASTIC_TIMEOUT": 60, "LINKER_ELASTIC_CA": authority,
        "LINKER_ELASTIC_USER": "linker", "LINKER_ELASTIC_PASSWORD": secret,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    corpus, out = write_corpus(tmp_path / "c.jsonl", 20), tmp_path / "index"
    linker("index", "build", corpus, "--out", out, "--backend", "elastic", "--url", node.url)
    linker("index", "add", out, write_corpus(tmp_path / "m.jsonl", 5, prefix="m"))
    linker("index", "delete", out, "m1")
    store = ClusterIndex(ElasticSettings.from_json(manifests.load(out).elastic))
    with pytest.raises(Exception, match="unauthorized"):
        store.client.security.put_user(username="other", password=secret, roles=["superuser"])
    store.close()
