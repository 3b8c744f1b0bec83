"""The user page's commands run, and the compose file agrees with the page."""

import re
from pathlib import Path

import pytest

from indexes.address import Address
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.store import manifest as manifests
from tests import elastic_server
from tests.helpers import ROOT, linker, run_page, write_corpus

PAGE = (ROOT / "docs" / "elasticsearch.md").read_text(encoding="utf-8")
TESTED = r"<!-- tested -->\n```sh\n(.*?)```"


@pytest.mark.slow
def test_the_blocks_run(elastic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", elastic)
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    write_corpus(tmp_path / "corpus.jsonl", 50)
    write_corpus(tmp_path / "more.jsonl", 5, prefix="more")
    try:
        printed = run_page("elasticsearch.md", tmp_path, TESTED, blocks=4)
        assert "55 in all" in printed
        assert printed.count("holds the same documents") == 2
        assert "'shards': 2" not in printed.split("holds the same")[0]
    finally:
        store = ClusterIndex(ElasticSettings.from_json(manifests.load(tmp_path / "news").elastic))
        store.drop()
        store.close()
        for name in ("stories", "all"):
            ClusterIndex(ElasticSettings.of(Address((elastic,), name))).remove_all()


def test_every_variable_and_option_exists() -> None:
    files = (ROOT / "indexes" / "cluster" / name for name in ("client.py", "trust.py"))
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    for variable in set(re.findall(r"LINKER_ELASTIC_(\w+)", PAGE)):
        forms = (f'"{variable.removesuffix("_FILE")}"', f"prefix}}{variable}", f"LINKER_ELASTIC_{variable}")
        assert any(form in source for form in forms), variable
    shown = linker("index", "build", "--help").stdout
    for option in ("--backend", "--url", "--shards", "--replicas", "--prefix", "--language", "--vectors"):
        assert option in PAGE
        assert option in shown


def test_the_compose_file_is_closed_to_other_machines_and_has_a_password() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["elasticsearch"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["xpack.security.enabled"] == "true"
    assert service["environment"]["ELASTIC_PASSWORD"].startswith("${ELASTIC_PASSWORD:?")  # no default
    version = re.fullmatch(r"\$\{ELASTIC_IMAGE:-elasticsearch:(8\.\d+)\.\d+\}", service["image"])
    assert version
    assert f"Elasticsearch {version[1]}" in PAGE
    assert (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines().count(".env") == 1


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)], ids=["ci", "here"]
)
def test_a_missing_server_cannot_hide_in_ci(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_HOME", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="Elasticsearch is not here"):
        elastic_server.require()
