"""Saving and loading of a text encoder: model.safetensors, config.json, tokenizer.json and a model card; no pickles."""

from pathlib import Path

import orjson

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.encoders.described import FORMAT, read_described, read_tokenizer
from linker.encoders.model_folder import (
    CARD,
    CONFIG,
    MODULES,
    TOKENIZER,
    WEIGHTS,
    card,
    format_of,
    replacing,
    write_part,
)
from linker.encoders.shapes import without_values
from linker.encoders.text import TextEncoder
from linker.encoders.weights import check_shapes, load_state, shapes_of, to_bytes

# The file that sentence-transformers reads first: the class (by path) that loads each subfolder.
SENTENCE_TRANSFORMERS = [
    {"idx": 0, "name": "0", "path": "", "type": "linker.integrations.sentence_transformers.LinkerModule"}
]


def save(encoder: TextEncoder, folder: Path, notes: str = "") -> None:
    """Write a model, completely replacing any earlier one; `notes` go into its model card.

    The header of the weights holds the fingerprint of all parts, so that changes to the folder are detected.
    Raises InputError if the folder holds anything but an encoder, or cannot be written.
    """
    with replacing(folder, [FORMAT], "encoder of `linker train`") as new:
        save_parts(encoder, new)
        write_part(new / MODULES, orjson.dumps(SENTENCE_TRANSFORMERS, option=orjson.OPT_INDENT_2))
        write_part(new / CARD, _card(encoder, folder.name, notes))


def save_parts(encoder: TextEncoder, folder: Path) -> None:
    """Write the files that `load` reads into an existing folder, one after the other."""
    settings = {"format": FORMAT, **encoder.describe()}
    write_part(folder / TOKENIZER, encoder.tokenizer.to_bytes())
    write_part(folder / CONFIG, orjson.dumps(settings, option=orjson.OPT_INDENT_2))
    write_part(folder / WEIGHTS, _weights(encoder))


def save_weights(encoder: TextEncoder, folder: Path) -> None:
    """Replace only the weights of a saved model, atomically."""
    write_atomically(folder / WEIGHTS, _weights(encoder))


def is_saved(folder: Path) -> bool:
    """Return whether a folder's config.json belongs to an encoder, whichever version wrote it."""
    return format_of(folder).startswith("linker-encoder-")


def load(folder: Path) -> TextEncoder:
    """Read a model that `save` wrote. Raises InputError naming the file at fault, before weights are allocated."""
    config, max_length = read_described(folder)
    tokenizer = read_tokenizer(folder)
    with without_values():
        check_shapes(folder / WEIGHTS, shapes_of(TextEncoder.new(config, tokenizer, max_length).module))
    encoder = TextEncoder.new(config, tokenizer, max_length)
    load_weights(encoder, folder)
    encoder.module.eval()
    return encoder


def load_weights(encoder: TextEncoder, folder: Path) -> None:
    """Read a folder's weights into its model. Raises InputError if they are missing or belong to another model."""
    fingerprint = load_state(encoder.module, folder / WEIGHTS)
    if fingerprint != encoder.fingerprint:
        raise InputError(
            f"{folder} is damaged: its weights, {CONFIG} and {TOKENIZER} do not belong together; "
            "copy it again or train again"
        )


def _weights(encoder: TextEncoder) -> bytes:
    return to_bytes(encoder.module.state_dict(), encoder.fingerprint)


def _card(encoder: TextEncoder, name: str, notes: str) -> bytes:
    parameters = sum(p.numel() for p in encoder.module.parameters())
    about = f"""A text encoder of kind `{encoder.kind}`: {parameters:,} parameters, vectors of dimension {encoder.dim},
a vocabulary of {encoder.tokenizer.size:,} tokens, texts cut after {encoder.max_length} tokens. Cosines of its
vectors rank links between texts. It is untested on other languages, kinds of text and periods than those of its
training data, and repeats their biases."""
    code = f"""```python
from linker.encoders.loading import load_encoder

vectors = load_encoder("{name}").encode(["a text", "another"])  # float32 [2, {encoder.dim}], L2-normalised
```"""
    settings = encoder.describe()["model"]
    return card(name, about, code, settings, notes, f"Fingerprint: `{encoder.fingerprint}`")
