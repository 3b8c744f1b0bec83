"""Behind the methods `auto` and `cascade`: evidence, learning from links, self-training, models."""

__all__: list[str] = []
