"""Array types by element type. Shapes are given where an array is used."""

from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
FloatArray = Float32Array | Float64Array
AnyArray = npt.NDArray[Any]
