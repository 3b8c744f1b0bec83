"""The parts that are compiled, and optional: without a C compiler the installation goes on, with FAISS and numpy."""

from pathlib import Path

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            f"indexes.kernels._{source.stem}",
            [source.as_posix()],
            # A product and a sum that are rounded as one would differ from numpy's.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            libraries=["m"],
            optional=True,
        )
        for source in sorted(Path("indexes/kernels").glob("*.c"))
    ]
)
