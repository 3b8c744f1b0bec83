"""The errors that are the user's to mend; the command line prints their text and exits with 1."""

from __future__ import annotations

# For each library that is not always there, the extra that brings it.
EXTRA_OF = {
    "elasticsearch": "elastic",
    "faiss": "cpu",
    "gensim": "vectors",
    "matplotlib": "plot",
    "pytorch_metric_learning": "train",
    "ray": "ray",
    "safetensors": "train",
    "sentence_transformers": "pretrained",
    "sklearn": "entities",
    "spacy": "entities",
    "tokenizers": "pretrained",
    "torch": "train",
    "transformers": "pretrained",
}


class LinkerError(Exception):
    """Base of every error of this package; its text names what was wrong, where, and the remedy."""


class InputError(LinkerError):
    """A file or value given by the user cannot be used; names the file and, where known, the line."""


class ConfigError(LinkerError):
    """A configuration file or a `--set` value is wrong."""
