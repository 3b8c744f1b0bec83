"""compose.yaml and the systemd unit: closed to the network, hardened, and with existing options."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from indexes.cluster import trust
from indexes.errors import UntrustedHostError
from linker.server.commands import serve
from tests.deploy import dockerfile
from tests.helpers import ROOT, linker

UNIT = ROOT / "deploy" / "linker.service"
HARDENED = (
    "DynamicUser=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "NoNewPrivileges=yes",
    "CapabilityBoundingSet=", "StateDirectoryMode=0700", "SystemCallFilter=@system-service",
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
    assert (
        service["environment"]["LINKER_ELASTIC_PASSWORD"] == "${LINKER_PASSWORD:-}"
    )  # no default that works
    assert service["environment"]["LINKER_ELASTIC_USER"] == "linker"
    assert stages[-1].last("CMD").words == [word for word in service["command"] if "linker" not in word][:-1]
    assert service["command"][-2:] == ["--allow-host", "linker"]


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
