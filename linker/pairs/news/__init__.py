"""The similarity of two news articles: encoders, named entities and semi-supervision."""
