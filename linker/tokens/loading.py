"""Loading a tokenizer from its file."""

from __future__ import annotations

from pathlib import Path

import orjson

from linker.errors import InputError
from linker.files import MAX_TOKENIZER, read_regular
from linker.tokens.pieces import PieceTokenizer
from linker.tokens.words import Tokenizer, Vocabulary, WordTokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a file that `save` wrote, or in a tokenizer.json of the `tokenizers` library.

    Raises InputError where the file holds neither, MissingExtraError without the library.
    """
    try:
        content = orjson.loads(read_regular(path, MAX_TOKENIZER))
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from None
    except orjson.JSONDecodeError as e:
        raise InputError(f"{path} is not a tokenizer's JSON: {e}") from None
    if not isinstance(content, dict) or content.get("type") != "words":
        return PieceTokenizer.load(path)
    tokens = content.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise InputError(f"{path}: tokens is not a list of strings")
    try:
        return WordTokenizer(Vocabulary(tuple(tokens)))
    except InputError as e:
        raise InputError(f"{path}: {e}") from None
