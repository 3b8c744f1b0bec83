"""Malicious model folders from elsewhere, and the outcome of each; a benchmark may request more of them.

`attack` changes a copy of a sound folder in every named way and in some random ways, and counts the outcomes:
"refused" (an error that names the remedy), "same" (exactly the saved model); anything else is a fault.
"""

import functools
import json
import os
import random
import shutil
import signal
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from linker.base.errors import LinkerError

Change = Callable[[Path], None]
SECONDS = 60  # after this long, a load counts as hanging
HUGE = [100_000, 1 << 40, 10**30, -1, 0, True, None, 1.5, 1e300, "8", "", [], [8], {}, {"a": [1]}, [[1]] * 3]
DEEP = b"[" * 200_000


def attack(
    sound: Path, load: Callable[[Path], str], work: Path, random_changes: int = 0, seed: int = 0
) -> Counter[str]:
    """Return how often each outcome occurred, "CASE: OUTCOME" for faults; `load` returns a folder's fingerprint."""
    expected, outcomes = load(sound), Counter[str]()
    for name, change in [*named(sound), *at_random(sound, random_changes, seed)]:
        folder = work / "hostile"
        shutil.copytree(sound, folder)
        change(folder)
        outcome = _outcome(folder, load, expected)
        outcomes[outcome if outcome in ("refused", "same") else f"{name}: {outcome}"] += 1
        shutil.rmtree(folder)
    return outcomes


def named(sound: Path) -> Iterator[tuple[str, Change]]:
    """Yield a change for every file (replaced by another kind of file) and for every setting."""
    for path in sorted(
        p.relative_to(sound) for p in sound.rglob("*") if p.suffix in (".json", ".safetensors")
    ):
        weights = path.suffix == ".safetensors"
        for change in (*REPLACEMENTS, *(HEADERS if weights else ())):
            yield f"{path}{change.__name__}", _at(path, change)
    settings = json.loads((sound / "config.json").read_bytes())
    for keys in _places(settings):
        for value in HUGE:
            change_one = functools.partial(_set, keys=keys, value=value)
            yield f"{'.'.join(keys)} = {value!r}"[:60], _at(Path("config.json"), change_one)


def at_random(sound: Path, count: int, seed: int) -> Iterator[tuple[str, Change]]:
    """Yield changes of a few random bytes."""
    files = sorted(p.relative_to(sound) for p in sound.rglob("*") if p.is_file())
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        yield f"random {number}", _at(rng.choice(files), functools.partial(_alter, rng=rng))


def _at(path: Path, change: Change) -> Change:
    def changed(folder: Path) -> None:
        change(folder / path)

    return changed


def _outcome(folder: Path, load: Callable[[Path], str], expected: str) -> str:
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        return "same" if load(folder) == expected else "ANOTHER MODEL"
    except LinkerError as e:
        return "refused" if str(e) else "NO TEXT"
    except Exception as e:
        return f"{type(e).__name__} {e}"[:120]
    finally:
        signal.alarm(0)


def _late(*_: object) -> None:
    raise TimeoutError("it hangs")


def _to_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _to_deep(path: Path) -> None:
    path.write_bytes(DEEP if path.suffix == ".json" else struct.pack("<Q", len(DEEP)) + DEEP)


def _to_large(path: Path) -> None:
    os.truncate(path, 1 << 40)  # sparse


def _to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def _to_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _longer_header(path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 1 << 62) + path.read_bytes()[8:])


def _rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


def _first(header: dict[str, Any]) -> Any:
    return header[min(name for name in header if name != "__metadata__" and header[name]["shape"])]


def _other_shape(path: Path) -> None:
    _rewrite(path, lambda header: _first(header).update(shape=[1, *_first(header)["shape"]]))


def _other_type(path: Path) -> None:
    _rewrite(path, lambda header: _first(header).update(dtype="I32"))


def _another_tensor(path: Path) -> None:
    from safetensors.numpy import load, save

    tensors = load(path.read_bytes())
    path.write_bytes(save(tensors | {"zzz": next(iter(tensors.values()))}))


def _fewer_tensors(path: Path) -> None:
    from safetensors.numpy import load, save

    tensors = load(path.read_bytes())
    path.write_bytes(save(dict(list(tensors.items())[1:])))


def _not_a_number(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4] + struct.pack("<f", float("nan")))


def _places(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in value.items():
        yield (*above, key)
        if isinstance(inner, dict):
            yield from _places(inner, (*above, key))


def _set(path: Path, keys: tuple[str, ...], value: Any) -> None:
    settings = inner = json.loads(path.read_bytes())
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(settings), encoding="utf-8")


def _alter(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 4, 16])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


REPLACEMENTS = (_to_device, _to_pipe, _to_folder, _to_deep, _to_large, _to_nothing, _to_half)
HEADERS = (_longer_header, _other_shape, _other_type, _another_tensor, _fewer_tensors, _not_a_number)
