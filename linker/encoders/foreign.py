"""Checks of model folders before transformers or sentence-transformers opens them: they may hold data, never code.

Both libraries are also called with remote code disabled and safetensors only; with the checks here, no file can make
them import a class, unpickle anything or allocate a large amount of memory.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from linker.base.errors import InputError
from linker.base.files import read_json
from linker.encoders.model_folder import CONFIG, MAX_SIZE, MAX_TOKENS, MODULES, check_no_links

CLASSES = (
    "Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "Dropout", "WeightedLayerPooling", "StaticEmbedding",
)  # fmt: skip
TYPE = re.compile(
    r"sentence_transformers\.(models|base\.modules|sentence_transformer\.modules)(\.[a-z_]+)?\."
    rf"({'|'.join(CLASSES)})"
)
ACTIVATION = re.compile(r"torch\.nn\.(modules\.(activation|linear)\.)?[A-Z]\w*")
CODE = {"auto_map", "custom_pipelines", "custom_generate", "trust_remote_code", "use_kernels"}
ARGUMENTS = {
    f"{part}_{kind}" for part in ("model", "tokenizer", "processor", "config") for kind in ("args", "kwargs")
}
EXECUTABLE = {
    ".py",
    ".pyc",
    ".so",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".pkl",
    ".pickle",
    ".joblib",
    ".npy",
    ".npz",
}
READ = {".json", ".txt", ".model", ".md", ".jinja"}  # files that the libraries read completely
UNPARSED = {"tokenizer.json", "vocab.json", "added_tokens.json"}
MAX_FILE, MAX_FILES, MAX_MODULES = 256 << 20, 10_000, 16
MAX_NUMBER = 1 << 30
# Limits on the numbers in a config.json, by part of the key; the first match applies.
LIMITS = (
    ("vocab", MAX_TOKENS), ("hidden_size", MAX_SIZE), ("position", 1 << 20), ("length", 1 << 20), ("size", 1 << 16),
    ("dim", 1 << 16), ("d_model", MAX_SIZE), ("embd", MAX_SIZE), ("layer", 256), ("block", 256), ("expert", 1024),
    ("head", 1024), ("group", 1024),
)  # fmt: skip


def check_foreign(folder: Path, *, strict: bool = False) -> None:
    """Raise InputError unless transformers or sentence-transformers can open a folder without running code from it.

    `strict` is for a folder inside another model, which the user did not name: no links, no Python files, no pickles.
    """
    if strict:
        check_no_links(folder)
    folders = list(dict.fromkeys([folder, *_module_folders(folder)]))
    files = folder.rglob("*") if strict else (path for part in folders for path in _entries(part))
    for count, path in enumerate(path for path in files if not path.is_dir()):
        if count == MAX_FILES:
            raise InputError(f"{folder} holds more than {MAX_FILES:,} files: it is not a model folder")
        _check_file(path, strict)
    for part in folders:
        if list(part.glob("*.bin")) and not list(part.glob("*.safetensors")):
            raise InputError(
                f"{part} holds its weights as a pickle: only model.safetensors is read; convert them"
            )


def check_allocation(folder: Path) -> None:
    """Raise InputError if config.json describes far more weights than the files hold: the others would be random."""
    from transformers import AutoConfig, AutoModel

    from linker.encoders.shapes import without_values
    from linker.encoders.weights import opened

    stored = 0
    for path in folder.glob("*.safetensors"):
        with opened(path) as file:
            stored += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with without_values():
        needed = sum(value.numel() for value in AutoModel.from_config(config).state_dict().values())
    if needed > 4 * stored + (16 << 20):  # the file of an encoder-decoder may hold only the encoder
        raise InputError(
            f"{folder} holds {stored:,} weights, but its config.json describes {needed:,}: copy it again"
        )


def _module_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders of a sentence-transformers model's modules. Raises InputError for an unknown class."""
    path = folder / MODULES
    if not path.exists():
        return
    modules = _read(path)
    if not isinstance(modules, list) or not 0 < len(modules) <= MAX_MODULES:
        raise InputError(f"{path} is damaged: a list of 1 to {MAX_MODULES} modules is expected")
    for module in modules:
        kind, place = (
            (module.get(key) for key in ("type", "path")) if isinstance(module, dict) else (None, None)
        )
        if not isinstance(kind, str) or not TYPE.fullmatch(kind):
            raise InputError(
                f"{path} names the module {str(kind)[:80]!r}, whose code linker does not run; "
                f"modules of sentence_transformers may be {', '.join(CLASSES)}"
            )
        if not isinstance(place, str) or not _is_inside(place):
            raise InputError(
                f"{path} is damaged: the path {str(place)[:80]!r} leads outside the model folder"
            )
        if kind.endswith("Dense"):
            _check_activation(folder / place / "config.json")
        if (folder / place).is_dir():
            yield folder / place


def _is_inside(place: str) -> bool:
    path = PurePosixPath(place)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in place and "\0" not in place


def _check_activation(path: Path) -> None:
    settings = _read(path)
    name = settings.get("activation_function", "torch.nn.Tanh") if isinstance(settings, dict) else None
    if not isinstance(name, str) or not ACTIVATION.fullmatch(name):
        raise InputError(f"{path} names the activation {str(name)[:80]!r}: only those of torch.nn are used")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as e:
        raise InputError(f"cannot read {folder}: {e.strerror}") from None


def _check_file(path: Path, strict: bool) -> None:
    if not path.is_file():
        raise InputError(
            f"{path} is not a regular file, or is a broken link: a model folder holds nothing but files"
        )
    if path.name == "adapter_config.json":
        raise InputError(
            f"{path} names another model as its base: merge the adapter into it and save the result"
        )
    if strict and path.suffix.lower() in EXECUTABLE:
        raise InputError(f"{path} is code or a pickle: a model inside another folder may hold neither")
    if path.suffix in READ and path.stat().st_size > MAX_FILE:
        raise InputError(f"{path} has more than {MAX_FILE:,} bytes: models with such files are not read")
    if path.suffix == ".json" and path.name not in UNPARSED:
        _check_settings(path, _read(path))


def _check_settings(path: Path, content: Any) -> None:
    """Check every entry of a JSON file, with an explicit stack, since a file can nest deeply."""
    rest = [("", content)]
    while rest:
        key, value = rest.pop()
        if reason := _objection(path.name, key, value):
            raise InputError(f"{path}: {key} = {str(value)[:80]} {reason}")
        if isinstance(value, dict):
            rest.extend((str(name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            rest.extend((key, inner) for inner in value)


def _objection(file: str, key: str, value: Any) -> str | None:
    """Return the problem with an entry of a file, if there is one."""
    if key in CODE and value:
        return "names code to be run, and linker runs none: remove the entry, or name another model"
    if key in ARGUMENTS and value:
        return "passes arguments to the library: remove the entry, or name another model"
    if key.endswith("attn_implementation") and isinstance(value, str) and not value.isidentifier():
        return "would fetch code: remove the entry"
    if file == CONFIG and isinstance(value, int | float) and not abs(value) <= _limit(key):
        return f"exceeds the limit ({_limit(key):,})"
    if file.endswith(".index.json") or key == "transformers_weights":
        leads_out = isinstance(value, str) and ("/" in value or "\\" in value)
        return "is not the name of a file in the folder" if leads_out else None
    return None


def _limit(key: str) -> int:
    return next((limit for part, limit in LIMITS if part in key), MAX_NUMBER)


def _read(path: Path) -> Any:
    try:
        return read_json(path)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from None
