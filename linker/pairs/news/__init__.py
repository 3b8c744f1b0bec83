"""How alike two news articles are: encoders with named entities and semi-supervision."""
