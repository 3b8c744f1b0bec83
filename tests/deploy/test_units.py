"""compose.yaml, the systemd unit and the Kubernetes chart: closed, hardened, and with existing options."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from indexes.cluster import trust
from indexes.errors import UntrustedHostError
from linker.server.commands import serve
from tests.deploy import dockerfile
from tests.helpers import ROOT, linker
from tests.site.test_words import CACHE

UNIT = ROOT / "deploy" / "linker.service"
HARDENED = (
    "DynamicUser=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "NoNewPrivileges=yes",
    "CapabilityBoundingSet=", "StateDirectoryMode=0700", "SystemCallFilter=@system-service", "TasksMax=512",
    "MemoryMax=80%",
)  # fmt: skip


def test_the_service_of_compose_can_do_little_and_is_closed_to_other_machines() -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["linker"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    (volume,) = service["volumes"]
    stages = dockerfile.read((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert volume.partition(":")[2] == stages[-1].last("VOLUME").text
    # no default that works
    assert service["environment"]["LINKER_ELASTIC_PASSWORD"] == "${LINKER_PASSWORD:-}"
    assert service["environment"]["LINKER_ELASTIC_USER"] == "linker"
    assert stages[-1].last("CMD").words == [word for word in service["command"] if "linker" not in word][:-1]
    assert service["command"][-2:] == ["--allow-host", "linker"]


def test_the_services_of_compose_have_limits_and_one_image_of_elasticsearch() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("elasticsearch", "linker"):
        assert services[name]["mem_limit"].endswith("_MEMORY:-2g}")
        assert services[name]["pids_limit"]
    assert services["user"]["image"] == services["elasticsearch"]["image"]


def test_the_service_of_compose_may_send_its_password_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["linker"]
    url = service["environment"]["LINKER_ELASTIC_URL"]
    with pytest.raises(UntrustedHostError, match="LINKER_ELASTIC_PRIVATE_NETWORK"):
        trust.check([url], named=True)
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    trust.check([url], named=False)
    with pytest.raises(UntrustedHostError, match="plain http"):
        trust.check(["http://other:9200"], named=True)


def test_variables_take_the_place_of_the_service_s_options_and_of_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {"LINKER_SERVE_WORKERS": "2", "LINKER_SEARCH_K": "none"}.items():
        monkeypatch.setenv(name, value)
    assert "--workers requires --api" in linker("serve", tmp_path, check=2).stderr
    monkeypatch.setenv("LINKER_SERVE_WORKERS", "none")
    assert "'none' is not a valid int" in linker("serve", tmp_path, check=2).stderr
    assert "holds no index" in linker("search", tmp_path, "a text", check=1).stderr
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["linker"]
    shown = linker("serve", "--help").stdout
    for name in service["environment"]:
        option = name.removeprefix("LINKER_SERVE_").lower().replace("_", "-")
        assert name.startswith("LINKER_ELASTIC_") or f"--{option}" in shown


def test_the_unit_is_hardened_and_its_command_exists() -> None:
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    assert not [line for line in HARDENED if line not in lines]
    (command,) = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart=")]
    stages = dockerfile.read((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    shown = linker("serve", "--help").stdout
    for words in (shlex.split(command)[1:], stages[-1].last("CMD").words):
        assert words[0] == serve.serve.__name__
        assert all(option in shown for option in words if option.startswith("--"))
    assert re.search(r"--host 127\.0\.0\.1 .*--token-file", command)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_understands_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text(encoding="utf-8").replace("/opt/linker/bin/linker", "/bin/true"), encoding="utf-8"
    )
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rated.returncode == 0, rated.stdout[-200:]  # an exposure of at most 2.0 out of 10


CHART = ROOT / "deploy" / "chart"
ELASTIC = (
    "elasticsearch.url=https://es:9200", "elasticsearch.passwordSecret=es", "elasticsearch.caSecret=authority"
)  # fmt: skip


@pytest.fixture(scope="module")
def helm() -> str:
    found = shutil.which("helm") or next((str(path) for path in sorted(CACHE.glob("helm-*/helm"))), None)
    if found is None:
        pytest.skip("needs helm: run .ci/helm")
    return found


def drawn(helm: str, *values: str) -> dict[str, Any]:
    """Return the objects by kind, as they go to Kubernetes."""
    yaml = pytest.importorskip("yaml")
    command = [
        helm, "template", "news", str(CHART), "--namespace", "press", *(f"--set={value}" for value in values),
    ]  # fmt: skip
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {part["kind"]: part for part in yaml.safe_load_all(text)}


def test_helm_finds_nothing_wrong(helm: str) -> None:
    subprocess.run([helm, "lint", "--strict", CHART], check=True, capture_output=True)


def test_the_pod_runs_what_the_image_runs_and_can_do_little(helm: str) -> None:
    objects = drawn(helm)
    pod = objects["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    (container,) = pod["containers"]
    image = dockerfile.read((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
    start = image.last("CMD").words
    assert container["args"][: len(start)] == start
    assert container["args"][len(start) :: 2] == ["--allow-host"] * 3
    assert container["args"][len(start) + 1 :: 2] == ["news", "news.press", "news.press.svc"]
    assert "--allow-host" in linker("serve", "--help").stdout
    user, _, group = image.last("USER").text.partition(":")
    security = pod["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (int(user), int(group))
    assert (security["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"data": image.last("VOLUME").text, "tmp": "/tmp"}
    assert objects["StatefulSet"]["spec"]["replicas"] == 1  # an index on a volume has one writer
    assert "type" not in objects["Service"]["spec"]  # reachable only from within the cluster


def test_probes_ask_by_a_name_that_is_answered(helm: str) -> None:
    """A kubelet sends the pod's address as the host name; like any unknown name, the service refuses it with 421."""
    (container,) = drawn(helm)["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    paths = {}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
        paths[probe] = asked["path"]
    assert paths == {"startupProbe": "/ready", "readinessProbe": "/ready", "livenessProbe": "/health"}
    assert container["ports"][0]["containerPort"] == 8000


def test_the_password_of_elasticsearch_comes_from_a_secret(helm: str) -> None:
    pod = drawn(helm, *ELASTIC)["StatefulSet"]["spec"]["template"]["spec"]
    variables = {entry["name"]: entry for entry in pod["containers"][0]["env"]}
    assert set(variables) == {f"LINKER_ELASTIC_{name}" for name in ("URL", "USER", "PASSWORD", "CA")}
    secret = {"name": "es", "key": "password"}
    assert variables["LINKER_ELASTIC_PASSWORD"]["valueFrom"] == {"secretKeyRef": secret}
    folder = str(Path(variables["LINKER_ELASTIC_CA"]["value"]).parent)
    assert {"name": "ca", "mountPath": folder, "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert {"name": "ca", "secret": {"secretName": "authority"}} in pod["volumes"]
    with pytest.raises(subprocess.CalledProcessError):
        drawn(helm, ELASTIC[0])  # without a password


def test_an_image_can_be_pinned_by_its_digest(helm: str) -> None:
    objects = drawn(helm, "image.digest=sha256:abc", "hosts={linker.example.org}")
    (container,) = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "starlinker@sha256:abc"
    assert container["args"][-1] == "linker.example.org"
