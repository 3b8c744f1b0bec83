"""Groups of one corpus: near copies, and documents about one story, by correlation clustering of P(same story)."""

__all__: list[str] = []
