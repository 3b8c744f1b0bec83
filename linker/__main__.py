"""`python -m linker`."""

from linker.cli import main

main()
