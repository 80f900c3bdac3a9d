"""PyTorch itself as the witness: `torch.ops.aten` executes the foreign nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from surgeon.errors import RecipeError
from surgeon.reference.arguments import Call, fit
from surgeon.reference.errors import NoWitness, Unsuited
from surgeon.reference.schema import Mismatch, parse_schema

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class TorchWitness:
    """The operators of the torch that is installed.

    Raises:
        RecipeError: torch is not installed.
    """

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise RecipeError(
                "torch is not installed",
                where="--reference torch",
                mend="Install it (`pip install torch`), or leave `--reference` out.",
            ) from None
        self._torch: Any = torch

    def __call__(self, call: Call, values: Sequence[Any], *, where: str) -> Any:
        """As `Witness`.

        Raises:
            NoWitness: torch has no such operator, or none of its overloads fits the arguments.
            Unsuited: torch refuses the operands.
        """
        overloads = self._overloads(call)
        if not overloads:
            raise NoWitness(call.operator, where=where, why="torch has no such operator")
        try:
            index, bound = fit([str(o._schema) for o in overloads], call, values)
        except Mismatch as error:
            raise NoWitness(call.operator, where=where, why=str(error)) from None
        positional, named = [], {}
        for argument in overloads[index]._schema.arguments:
            value = self._into(bound[argument.name])
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                positional.append(value)
        try:
            with self._torch.no_grad():
                return self._out_of(overloads[index](*positional, **named))
        except NotImplementedError as error:
            raise NoWitness(call.operator, where=where, why=_first_line(error)) from None
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            raise Unsuited(_first_line(error)) from None

    def _overloads(self, call: Call) -> list[Any]:
        """The operator's overloads: the one the file names first, then those that take tensors."""
        packet = getattr(self._torch.ops.aten, call.operator, None)
        if packet is None:
            return []
        found: list[tuple[Any, ...]] = []
        for name in packet.overloads():
            overload = getattr(packet, name)
            try:
                schema = parse_schema(str(overload._schema))
            except ValueError:
                continue
            if "out" in name.split("_") or not schema.parameters:
                continue
            named = bool(call.overload) and schema.overload == call.overload
            found.append((not named, schema.parameters[0].type != "Tensor", len(found), overload))
        return [overload for *_, overload in sorted(found, key=lambda row: row[:3])]

    def _into(self, value: Any) -> Any:
        torch = self._torch
        if isinstance(value, np.dtype):
            return torch.bfloat16 if value == _BFLOAT16 else getattr(torch, value.name)
        if isinstance(value, list):
            return [self._into(item) for item in value]
        if not isinstance(value, np.ndarray):
            return value
        copied = np.array(value, order="C")  # torch writes in place, and wants positive strides
        if copied.dtype == _BFLOAT16:
            return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(copied)

    def _out_of(self, value: Any) -> Any:
        torch = self._torch
        if isinstance(value, torch.Tensor):
            value = value.detach().contiguous().resolve_conj().resolve_neg()
            if value.dtype == torch.bfloat16:
                return value.view(torch.int16).numpy().view(_BFLOAT16)
            return value.numpy()
        if isinstance(value, tuple):
            return tuple(self._out_of(item) for item in value)
        if isinstance(value, list):
            if value and all(isinstance(item, int) for item in value):
                return np.asarray(value, np.int64)
            return [self._out_of(item) for item in value]
        return np.asarray(value)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
