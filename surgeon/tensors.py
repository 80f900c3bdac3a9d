"""The values of a tensor of a file as an array, wherever they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from surgeon.errors import ModelError
from surgeon.external import values_of

Array = npt.NDArray[Any]


def array_of(tensor: onnx.TensorProto, folder: Path | None) -> Array:
    """The values of a tensor, read from `folder` where they are external.

    Raises:
        ModelError: The data is missing, outside the folder, or too short.
    """
    try:
        return values_of(tensor, folder)
    except Exception as error:  # onnx raises anything from KeyError to its own ValidationError
        why = error.what if isinstance(error, ModelError) else error
        raise ModelError(
            f"the values of initializer `{tensor.name}` cannot be read: {why}",
            where=str(folder or "model"),
            mend="Put the external data file beside the model, or export the model again.",
        ) from None


def dense_of(tensor: onnx.SparseTensorProto, folder: Path | None) -> Array:
    """The values of a sparse tensor; indices count along the whole tensor, or along each axis.

    graphsurgeon's own reading knows nothing of raw data, and gives zeros in their place.

    Raises:
        ModelError: As for `array_of`, or its indices do not fit.
    """
    values, indices = (array_of(part, folder) for part in (tensor.values, tensor.indices))
    dense = np.zeros(tuple(tensor.dims), values.dtype)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise ModelError(
            f"the values of initializer `{tensor.values.name}` cannot be read: {error}",
            where=str(folder or "model"),
            mend="Export the model again.",
        ) from None
    return dense
