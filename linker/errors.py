"""The errors that are the user's to mend; the command line prints their text and exits with 1."""

from __future__ import annotations


class LinkerError(Exception):
    """Base of every error of this package; its text names what was wrong, where, and the remedy."""


class InputError(LinkerError):
    """A file or value given by the user cannot be used; names the file and, where known, the line."""


class ConfigError(LinkerError):
    """A configuration file or a `--set` value is wrong."""
