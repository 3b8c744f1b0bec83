"""The one part that is compiled, and optional: without a C compiler the installation goes on and FAISS scans."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "indexes._scan", ["indexes/scan.c"], extra_compile_args=["-O3"], libraries=["m"], optional=True
        )
    ]
)
