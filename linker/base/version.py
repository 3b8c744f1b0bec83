"""The version of this package, importable from every subpackage."""

__version__ = "0.2.0"
