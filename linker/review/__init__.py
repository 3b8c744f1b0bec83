"""Reading with a person: what was judged, and when it is enough."""
