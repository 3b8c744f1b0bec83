"""The user page's commands run, and the compose file agrees with the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from indexes.address import Address
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex
from indexes.store import manifest as manifests
from tests.helpers import ROOT, write_corpus

PAGE = (ROOT / "docs" / "elasticsearch.md").read_text(encoding="utf-8")
TESTED = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_blocks_run(elastic: str, tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus.jsonl", 50)
    write_corpus(tmp_path / "more.jsonl", 5, prefix="more")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "URL": elastic,
        "LINKER_ELASTIC_TIMEOUT": "60",
    }
    assert len(TESTED) == 4
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "".join(TESTED)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "55 in all" in done.stdout
        assert done.stdout.count("holds the same documents") == 2
        assert "'shards': 2" not in done.stdout.split("holds the same")[0]
    finally:
        store = ClusterIndex(ElasticSettings.from_json(manifests.load(tmp_path / "news").elastic))
        store.drop()
        store.close()
        for name in ("stories", "all"):
            ClusterIndex(ElasticSettings.of(Address((elastic,), name))).remove_all()


def test_every_variable_and_option_exists() -> None:
    from indexes.cluster import client as elastic_client
    from indexes.cluster import trust as elastic_trust

    modules = (elastic_client, elastic_trust)
    source = "".join(Path(str(m.__file__)).read_text(encoding="utf-8") for m in modules)
    for variable in set(re.findall(r"LINKER_ELASTIC_(\w+)", PAGE)):
        forms = (f'"{variable.removesuffix("_FILE")}"', f"prefix}}{variable}", f"LINKER_ELASTIC_{variable}")
        assert any(form in source for form in forms), variable
    shown = subprocess.run(
        [sys.executable, "-m", "linker", "index", "build", "--help"],
        capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"},
    ).stdout  # fmt: skip
    for option in ("--backend", "--url", "--shards", "--replicas", "--index", "--language", "--vectors"):
        assert option in PAGE
        assert option in shown


def test_the_compose_file_is_closed_to_other_machines_and_has_a_password() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["elasticsearch"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["xpack.security.enabled"] == "true"
    assert service["environment"]["ELASTIC_PASSWORD"].startswith("${ELASTIC_PASSWORD:?")  # no default
    version = re.fullmatch(r"elasticsearch:(8\.\d+)\.\d+", service["image"])
    assert version
    assert f"Elasticsearch {version[1]}" in PAGE
    assert (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines().count(".env") == 1
