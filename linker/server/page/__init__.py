"""The review workbench in a browser: `create_app` returns the application that `linker serve` runs."""

__all__: list[str] = []
