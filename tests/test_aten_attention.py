"""Attention that fell back: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import Call, Held, holds, normal, refuses

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

B, L, E, H = 3, 5, 12, 4


def projections(dtype: Any = np.float32) -> list[Any]:
    """The weights of queries, keys and values together, and of the result."""
    shapes = [(3 * E, E), (3 * E,), (E, E), (E,)]
    return [Held(normal(*shape, dtype=dtype)) for shape in shapes]


def masks() -> list[tuple[Any, int | None]]:
    """A mask of each kind; some hide everything from a query."""
    flat = GENERATOR.random((L, L)) < 0.4
    flat[1] = True
    padding = GENERATOR.random((B, L)) < 0.4
    whole = GENERATOR.random((B, H, L, L)) < 0.4
    return [
        (None, None),
        (flat, 0),
        (padding, 1),
        (whole, 2),
        (whole, None),
        (flat / np.float32(2), 0),
    ]


GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize(("opset", "dtype"), [(9, np.float32), (13, np.float64), (17, np.float32)])
def test_heads_with_one_weight(opset: int, dtype: Any) -> None:
    for index, (mask, kind) in enumerate(masks()):
        dynamic, average = index % 2 == 0, index % 3 == 0
        x = normal(B, L, E, dtype=dtype)
        operands = (
            [x, x.copy(), x.copy()] if index % 2 else [x, normal(B, L, E, dtype=dtype), x * 2]
        )
        rest = [E, H, *projections(dtype), mask, True, average, kind]
        call = Call("_native_multi_head_attention", [*operands, *rest], outputs=2, opset=opset)
        call.dynamic = dynamic and (mask is None or kind == 0)
        holds(call)
        if kind is None and mask is None:
            call.operands.pop()  # 1.12 had no kinds of masks
            holds(call)


def test_heads_that_a_mask_does_not_say() -> None:
    flat = np.zeros((L, L), np.bool_)
    x = [normal(B, L, E)] * 3
    call = Call("_native_multi_head_attention", [*x, E, H, *projections(), flat, True, True])
    call.outputs = 2
    refuses(call, "what a mask of rank 2 stands for is not said")
    call = Call("_native_multi_head_attention", [*x, E, H, *projections(), None, False, True])
    call.outputs = 2
    refuses(call, "its weights are read, which it does not give")
    refuses(Call("_native_multi_head_attention", [*x, E, 5, *projections()], outputs=2), "5 heads")


@pytest.mark.parametrize("opset", [9, 13, 17])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("gelu", [False, True])
def test_an_encoder_layer(opset: int, first: bool, gelu: bool) -> None:
    norms = [Held(normal(E)) for _ in range(4)]
    forward = [Held(normal(*shape)) for shape in [(7, E), (7,), (E, 7), (E,)]]
    for mask, kind in masks():
        if mask is not None and kind is None:
            continue
        rest = [E, H, *projections(), gelu, first, 1e-5, *norms, *forward, mask, kind]
        call = Call("_transformer_encoder_layer_fwd", [normal(B, L, E), *rest], opset=opset)
        call.dynamic = kind in (None, 0)
        holds(call, tolerance=1e-4)


def product(
    *rest: Any, keys: int = 7, groups: int = 4, dtype: Any = np.float32, **more: Any
) -> Call:
    q, k, v = (normal(2, h, n, 6, dtype=dtype) for h, n in ((4, L), (groups, keys), (groups, keys)))
    return Call("scaled_dot_product_attention", [q, k, v, *rest], **more)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_product_of_heads(opset: int, dynamic: bool) -> None:
    if dynamic and opset == 9:
        return
    shared: dict[str, Any] = {"opset": opset, "dynamic": dynamic}
    some = GENERATOR.random((L, 7)) < 0.6
    some[2] = False
    holds(product(None, 0.0, False, None, False, **shared))
    holds(product(None, 0.0, True, None, False, **shared))
    holds(product(None, 0.0, True, 0.3, False, keys=3, **shared))
    holds(product(some, 0.0, False, 2.0, False, **shared))
    added = np.where(some, normal(L, 7), np.float32(-np.inf))
    holds(product(added, 0.0, False, None, False, **shared))
    holds(product(None, 0.0, False, None, True, groups=2, **shared))
    holds(product(some[None], 0.0, False, None, False, dtype=np.float64, **shared))
    flash = product(0.0, False, normal(L, 7), None, **shared)
    flash.operator = "_scaled_dot_product_flash_attention_for_cpu"
    holds(flash)


def test_a_query_without_keys_was_no_number_before_2_5() -> None:
    hidden = np.ones((L, 7), np.bool_)
    hidden[2] = False
    call = product(hidden, 0.0, False, None, False)
    model = call.model()
    for version, expected in (("2.4.1", True), ("2.5.0", False)):
        model.producer_name, model.producer_version = "pytorch", version
        saved = surgeon.apply(model, "aten-nn", verify=False).model.to_proto()
        (got,) = Session(saved).run(call.feeds).values()
        (want,) = Reference(model).run(call.feeds).values()
        assert np.isnan(got[:, :, 2]).all() == expected
        assert np.isnan(want[:, :, 2]).all() == expected
        assert not np.isnan(got[:, :, 3]).any()


def test_the_kernel_beneath_adds_a_mask_of_truth_values() -> None:
    """As PyTorch 2.13 does: what calls it makes numbers of such a mask first."""
    mask = GENERATOR.random((L, 7)) < 0.6
    call = product(mask, 0.0, False, None, None, False)
    call.operator = "_scaled_dot_product_attention_math"
    numbers = product(mask.astype(np.float32), 0.0, False, None, False)
    numbers.operands[:3] = call.operands[:3]
    (want,) = Reference(numbers.model()).run(numbers.feeds).values()
    model = call.model()
    saved = surgeon.apply(model, "aten-nn", verify=False).model.to_proto()
    for made in (Session(saved), Reference(model)):
        (got,) = made.run(call.feeds).values()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_is_random_is_refused() -> None:
    refuses(product(None, 0.5, False, None, False), "training mode")
