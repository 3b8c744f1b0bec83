"""Scoring pairs of pages, and assigning target pages to source pages."""
