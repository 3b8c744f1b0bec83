"""Start or join Ray, count its workers, load their encoders, and report its errors."""

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from indexes.errors import importing
from linker.base.errors import LinkerError
from linker.base.logs import logger
from linker.encoders.interface import Encoder

OBJECT_STORE = 200 << 20  # bytes of shared memory for data between two steps, on one machine


def import_ray() -> Any:
    """Import and return `ray`, without its log output or usage statistics. Raises MissingExtraError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not os.environ.get("RAY_ADDRESS"):  # else Ray replaces 127.0.0.1 with a reachable address
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else its internal messages appear on screen
    with importing("`engine` ray", "ray"):
        import ray
        import ray.data
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="ray.data")  # warns of fewer batches than workers
    return ray


@contextlib.contextmanager
def connection(ray: Any, cpus: int | None = None, gpus: int | None = None) -> Iterator[None]:
    """Use the running Ray, or join the cluster that RAY_ADDRESS names, or start Ray for this machine alone.

    If started, Ray has `cpus` CPUs, with one worker each, and `gpus` GPUs, by default all of the machine's. Raises
    LinkerError if it does not start.
    """
    if ray.is_initialized():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        alone = {
            "address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1",
            "object_store_memory": OBJECT_STORE, "num_cpus": cpus, "num_gpus": gpus, "_temp_dir": folder,
        }  # fmt: skip
        options = {} if os.environ.get("RAY_ADDRESS") else alone
        try:
            ray.init(log_to_driver=False, logging_level="error", **options)
        except Exception as error:  # Ray raises bare exceptions
            raise LinkerError(f"Ray did not start: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()


def workers(ray: Any, gpus: float = 0) -> int:
    """Return how many workers with one CPU and `gpus` GPUs each can run at once. Raises LinkerError if none can."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not gpus:
        return max(1, int(sum(machine.get("CPU", 0) for machine in machines)))
    # Rounding: in floating point, 0.3 / 0.1 is a little less than 3.
    held = (min(machine.get("CPU", 0), machine.get("GPU", 0) / gpus + 1e-9) for machine in machines)
    count = sum(map(int, held))
    if not count:
        most = max((machine.get("GPU", 0) for machine in machines), default=0)
        raise LinkerError(
            f"`worker_gpus` {gpus:g}: Ray has no machine with a CPU and that many GPUs (the most on one: {most:g}); "
            "start it on one (`ray start … --num-gpus N` if Ray does not find them), or leave the option out"
        )
    return count


def check_gpus(ray: Any, gpus: float) -> None:
    """Warn if PyTorch sees no GPU in a worker that Ray gives `gpus` GPUs. Raises the errors of `workers`."""
    if gpus and workers(ray, gpus):
        seen = ray.remote(_sees_gpu).options(num_cpus=1, num_gpus=gpus).remote()
        if not ray.get(seen):
            logger.warning(
                "PyTorch sees no GPU in Ray's workers, so they encode on the processor: install a PyTorch that is "
                "built for the GPUs on their machines"
            )


def _sees_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def load_checked(load: Callable[[], Encoder], fingerprint: str) -> Encoder:
    """Load a worker's encoder. Raises LinkerError unless it has this fingerprint."""
    encoder = load()
    if encoder.fingerprint != fingerprint:
        raise LinkerError(
            "the encoder on a worker differs from the one here: install the same one on all machines"
        )
    return encoder


def failure(error: Exception) -> LinkerError:
    """Return an error to report for Ray's: its message is the last line, which follows the worker's traceback."""
    return LinkerError(f"a worker failed: {str(error).strip().splitlines()[-1]}")
