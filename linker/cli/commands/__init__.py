"""The commands as functions of the same names: `link`, `group`, `find`, `watch`, `train`, `compare` and others.

Notes go to the logger `linker`. If work takes a while, `progress` is called with the step, the amount done, and the
total (None: unknown).
"""

__all__: list[str] = []
