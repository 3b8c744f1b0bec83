"""Training Siamese encoders on links between texts and documents."""
