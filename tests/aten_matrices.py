"""Calls of linear algebra: random matrices, and what holds of a call or refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
from aten_call import HAS_TORCH, by_torch, model_of

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

R = np.random.default_rng(8)
OPSETS = (11, 13, 18)
BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3))


def matrices(*shape: int, dtype: Any = np.float32) -> Any:
    return R.normal(size=shape).astype(dtype)


def positive(*shape: int, dtype: Any = np.float32) -> Any:
    a = matrices(*shape, dtype=dtype)
    return (a @ a.swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def lowered(model: Any, feeds: dict[str, Any]) -> list[Any]:
    result = surgeon.apply(model, "aten-linalg", verify=False, allow=["contract"])
    saved = result.model.to_proto()
    left = [n.op_type for n in saved.graph.node if n.domain]
    assert not left, f"{left}: {[m.reason for m in result.report.misses]}"
    return list(Session(saved).run(feeds).values())


def holds(
    operator: str,
    *arguments: Any,
    outputs: int = 1,
    overload: str = "",
    opset: int = 13,
    dynamic: bool = False,
    free: bool = False,
    tolerance: float = 1.0,
    compared: tuple[int, ...] | None = None,
) -> None:
    """All agree within some roundings; the condition of random matrices costs digits.

    With `dynamic` the batch is of any size, with `free` the matrices are too.
    """
    model, feeds = model_of(operator, arguments, outputs=outputs, overload=overload, opset=opset)
    if dynamic or free:
        for value in model.graph.input:
            for axis in range(len(value.type.tensor_type.shape.dim) - (0 if free else 2)):
                value.type.tensor_type.shape.dim[axis].dim_param = f"{value.name}_{axis}"
    found = lowered(model, feeds)
    tellers = [("witness", list(Reference(model).run(feeds).values()))]
    if HAS_TORCH and operator not in ("solve",):
        tellers.append(("torch", by_torch(operator, arguments, overload)))
    for teller, wanted in tellers:
        for index in compared or range(outputs):
            got, want = found[index], wanted[index]
            said = f"{operator} {[getattr(a, 'shape', a) for a in arguments]} opset {opset}"
            assert got.dtype == want.dtype, f"{said}: {got.dtype}, {teller} {want.dtype}"
            assert got.shape == want.shape, f"{said}: {got.shape}, {teller} {want.shape}"
            limit = tolerance * {4: 2e-4, 8: 1e-10}[got.dtype.itemsize]
            largest = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
            np.testing.assert_allclose(
                got, want, limit, limit * largest, err_msg=f"{said} {teller}"
            )


def refuses(
    operator: str, *arguments: Any, because: str, outputs: int = 1, opset: int = 13
) -> None:
    model, _ = model_of(operator, arguments, outputs=outputs, opset=opset)
    result = surgeon.apply(model, "aten-linalg", verify=False, every_miss=True, allow=["contract"])
    reasons = [str(miss.reason) for miss in result.report.misses]
    assert any(because in reason for reason in reasons), reasons
