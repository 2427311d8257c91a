"""Types of arrays, named once for the whole package."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]  # of rows or columns: what an array is indexed by
