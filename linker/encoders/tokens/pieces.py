"""Word pieces: any tokenizer.json of the `tokenizers` library."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import orjson

from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.files import MAX_TOKENIZER, read_regular
from linker.encoders.tokens.words import PAD, Tokenizer, Vocabulary, WordTokenizer

if TYPE_CHECKING:
    import tokenizers

PAD_NAMES = ("[PAD]", "<pad>")
UNK_NAMES = ("[UNK]", "<unk>")


class PieceTokenizer:
    """A tokenizer.json whose padding token has id 0; it adds no special tokens ([CLS]), padding or truncation."""

    def __init__(self, content: str, source: str = "tokenizer.json") -> None:
        """Read the content of a tokenizer.json; `source` names it in errors. Raises InputError, MissingExtraError."""
        with importing("a tokenizer.json", "pretrained"):
            from tokenizers import Tokenizer
        try:
            self._tokenizer: tokenizers.Tokenizer = Tokenizer.from_str(content)
        except Exception as e:  # the library raises bare exceptions
            raise InputError(f"{source} is not a tokenizer.json: {e}") from None
        self._source = source
        if not any(self._tokenizer.token_to_id(name) == PAD for name in PAD_NAMES):
            raise InputError(f"{source}: its padding token ({' or '.join(PAD_NAMES)}) must have the id 0")
        self._tokenizer.encode_special_tokens = True  # "[PAD]" in a text is a word like any other
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the tokenizer in a tokenizer.json. Raises InputError if it cannot be read or used."""
        try:
            return cls(read_regular(path, MAX_TOKENIZER).decode(), str(path))
        except (OSError, UnicodeDecodeError) as e:
            raise InputError(f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from None

    @property
    def size(self) -> int:
        """Number of ids, including padding."""
        return 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    @property
    def unknown(self) -> int | None:
        """Id for text that no piece matches, or None."""
        ids = (self._tokenizer.token_to_id(name) for name in UNK_NAMES)
        return next((i for i in ids if i is not None), None)

    def encode_batch(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Return each text's first `max_length` ids. Raises InputError if the vocabulary lacks its unknown token."""
        # The library refuses lone surrogates.
        plain = [text.encode(errors="replace").decode() for text in texts]
        try:
            encoded = self._tokenizer.encode_batch_fast(plain, add_special_tokens=False)
        # The library raises a bare exception if the vocabulary lacks its unknown token.
        except Exception as e:
            raise InputError(f"{self._source} cannot encode texts: {e}") from None
        return [e.ids[:max_length] for e in encoded]

    def tokens(self, text: str, max_length: int) -> list[str]:
        """Return the pieces behind the ids of one text."""
        ids = self.encode_batch([text], max_length)[0]
        return [self._tokenizer.id_to_token(i) or str(i) for i in ids]

    def to_bytes(self) -> bytes:
        """Return the content of the tokenizer.json."""
        return self._tokenizer.to_str().encode()


def load_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a file, ours or the library's. Raises InputError, MissingExtraError."""
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
