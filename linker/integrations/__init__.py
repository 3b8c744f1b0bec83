"""linker inside other frameworks, one module each; importing one needs the extra of its name."""

__all__: list[str] = []
