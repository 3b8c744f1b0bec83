"""linker inside other frameworks, one module each; each module needs the extra of the same name."""

__all__: list[str] = []
