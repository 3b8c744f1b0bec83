"""Report what is installed here, what the hardware offers and which servers answer."""

import http.client
import importlib.metadata
import importlib.util
import os
import platform
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from indexes import kernels
from indexes.cores import cores
from indexes.errors import install
from linker.base.errors import requirements
from linker.base.version import __version__

CPU_FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "neon", "asimd", "bf16")
ELASTICSEARCH = "http://127.0.0.1:9200"
ADDRESSES = "LINKER_ELASTIC_URL"  # environment variable with addresses, separated by commas


def examine(elasticsearch: str | None = None) -> dict[str, Any]:
    """Return a report: versions, extras, processor, GPUs, servers; it connects only to the Elasticsearch server."""
    installed = {extra: {p: _version(p) for p in packages} for extra, packages in requirements().items()}
    named = elasticsearch or os.environ.get(ADDRESSES, "").partition(",")[0].strip()
    return {
        "linker": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": installed.pop("", {}),
        "extras": installed,
        "cpu": {
            "cores": cores(),
            "model": _cpu_model(),
            "features": _cpu_features(),
            "scan": kernels.status("scan"),
            "bm25": kernels.status("postings"),
            "ranker": kernels.status("features"),
            "review": kernels.status("linear"),
        },
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpu": _gpus(),
        "servers": {"elasticsearch": _answers(named or ELASTICSEARCH)},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpuinfo(*keys: str) -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""


def _cpu_model() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _cpu_features() -> list[str]:
    flags = set(_cpuinfo("flags", "Features").split())
    return [f for f in CPU_FEATURES if f in flags]


def _gpus() -> dict[str, Any]:
    """Return the GPUs that each installed library sees; None for a missing library."""
    seen: dict[str, Any] = {"faiss": None, "torch": None}
    if importlib.util.find_spec("faiss"):
        import faiss

        seen["faiss"] = faiss.get_num_gpus() if hasattr(faiss, "get_num_gpus") else 0
    if importlib.util.find_spec("torch"):
        seen["torch"] = _torch_gpus() if any(Path("/dev").glob("nvidia[0-9]*")) else []
    return seen


def _torch_gpus() -> list[str]:
    """Return the names of the GPUs that PyTorch sees; call it only if there is a GPU, since loading takes seconds."""
    import torch

    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def _answers(url: str) -> dict[str, str]:
    if not url.startswith(("http://", "https://")):
        return {"url": url, "state": "is not an http address"}
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return {"url": url, "state": f"answers ({response.status})"}
    except urllib.error.HTTPError as e:
        return {"url": url, "state": f"answers ({e.code})"}
    except (OSError, ValueError, http.client.HTTPException) as e:
        return {"url": url, "state": f"does not answer ({getattr(e, 'reason', None) or e})"}


def render(report: dict[str, Any]) -> str:
    """Return a report as text for people to read."""
    lines = [f"linker {report['linker']}, Python {report['python']}, {report['platform']}"]
    cpu = report["cpu"]
    lines.append(
        f"cpu      {cpu['cores']} cores, {cpu['model']}: {' '.join(cpu['features']) or 'no vector features'}"
    )
    lines.append(f"scan     exact vector search: {cpu['scan']}; BM25: {cpu['bm25']}")
    lines.append(f"memory   {report['memory_gib']} GiB")
    gpu = report["gpu"]
    lines.append(f"gpu      faiss sees {gpu['faiss'] or 0}, torch sees {', '.join(gpu['torch'] or []) or 0}")
    lines.append("packages " + ", ".join(f"{p} {v or 'MISSING'}" for p, v in report["packages"].items()))
    for extra, packages in report["extras"].items():
        state = ", ".join(f"{p} {v or 'missing'}" for p, v in packages.items())
        hint = "" if all(packages.values()) else f"  → {install(extra)}"
        lines.append(f"extra    {extra}: {state}{hint}")
    for server, answer in report["servers"].items():
        lines.append(f"server   {server}: {answer['url']} {answer['state']}")
    return "\n".join(lines)
