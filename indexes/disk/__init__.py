"""Files: read as data from elsewhere, written so that they survive a crash."""
