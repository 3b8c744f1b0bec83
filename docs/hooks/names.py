"""The reference of Python, made from the public names of `linker`."""

from __future__ import annotations

import linker

TITLE = """# Python, in full

`import linker` gives these names, on first use, so that the import itself is fast. [The page with examples](../api.md)
shows how they work together; other modules are documented in their files.
"""


def names_page() -> str:
    """Return the page in Markdown: what mkdocstrings fills in for each public name, where the name is defined."""
    entries = (f"::: {_defined(name)}\n    options: {{ heading_level: 2 }}\n" for name in linker.__all__)
    return "\n".join([TITLE, *entries])


def _defined(name: str) -> str:
    value = getattr(linker, name)
    return f"{value.__module__}.{value.__qualname__}"
