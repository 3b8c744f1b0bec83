"""Builds on many machines with Ray: encode there, or encode there and write to the servers from there."""
