"""Renders benchmark results as the tables of the README and the docs."""
