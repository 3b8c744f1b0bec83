"""Scores of page pairs, and the assignment of targets to sources."""
