"""The reference of Python, made from the public names of `linker`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

import linker

TITLE = """# Python, in full

`import linker` gives these names, on first use, so that the import itself is fast. [The page with examples](../api.md)
shows how they work together; other modules are documented in their files.
"""


def names_page() -> str:
    """Return the page in Markdown: what mkdocstrings fills in for each public name, where the name is defined."""
    values = [getattr(linker, name) for name in linker.__all__]
    return "\n".join([TITLE, *(entry for value in values for entry in _entries(value))])


def _entries(value: Any) -> Iterator[str]:
    """Yield the entry of a public name and, of a function whose arguments are the fields of a record, the record's."""
    yield f"::: {value.__module__}.{value.__qualname__}\n    options: {{ heading_level: 2 }}\n"
    if function := getattr(value, "__wrapped__", None):
        record = get_type_hints(function)["options"]
        yield f"::: {record.__module__}.{record.__qualname__}\n    options: {{ heading_level: 3 }}\n"
