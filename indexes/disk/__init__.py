"""Files: read as untrusted data, written so that they survive a crash."""
