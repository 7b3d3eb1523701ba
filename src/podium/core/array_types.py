"""Type aliases for arrays and for the arguments of kernels.

Numba infers types when it compiles a kernel. `Int`, `Number` and `Lanes` in signatures only inform readers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
UInt64s = NDArray[np.uint64]
UInt32s = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]

Int = Any  # compiled as int64
Number = Any  # compiled as float64
Lanes = Any  # 16 float32 numbers
