import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before any model library is loaded: tests use no network
