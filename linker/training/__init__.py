"""Training of Siamese encoders on links between texts and documents."""

__all__: list[str] = []
