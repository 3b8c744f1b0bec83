"""What the methods `auto` and `cascade` know of two languages: evidence, what links teach, self-training, models."""

__all__: list[str] = []
