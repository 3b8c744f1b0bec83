"""Pages in a language: their terms, and what shows on their surface."""
