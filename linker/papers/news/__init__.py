"""The similarity of two news articles: encoders, named entities and semi-supervision."""

__all__: list[str] = []
