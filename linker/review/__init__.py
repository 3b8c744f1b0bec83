"""Relevance review by a person: which document to read next, what was judged, and when to stop."""
