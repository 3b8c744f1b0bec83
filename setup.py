"""The parts that are compiled, and optional: without a C compiler the installation goes on, with FAISS and numpy."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            f"indexes.{room}._{name}",
            [f"indexes/{room}/{name}.c"],
            # A product and a sum that are rounded as one would differ from numpy's.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            libraries=["m"],
            optional=True,
        )
        for room, name in (
            ("vectors", "scan"),
            ("text", "postings"),
            ("text", "features"),
            ("text", "linear"),
            ("text", "products"),
            ("text", "sampling"),
        )
    ]
)
