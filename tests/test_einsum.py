"""Random contractions: what `einsum-to-matmul` makes of them, held against numpy."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import surgeon
from surgeon.runtime import Session

SUBSCRIPTS = 40
LETTERS = "abcdE"


def random_equation(pick: random.Random) -> tuple[list[str], str]:
    """Terms of up to four letters, some with an ellipsis, and an equation of them."""
    dots = pick.random() < 0.3
    letters = LETTERS[: pick.randint(2, len(LETTERS))]
    terms = []
    for _ in range(pick.choice([1, 2, 2, 2, 3])):
        term = [pick.choice(letters) for _ in range(pick.randint(0, 4))]
        if dots and pick.random() < 0.7:
            term.insert(pick.randint(0, len(term)), "...")
        terms.append("".join(term))
    used = sorted(set("".join(terms)) - {"."})
    output = pick.sample(used, pick.randint(0, len(used)))
    if any("." in term for term in terms):
        output.insert(pick.randint(0, len(output)), "...")
    arrow = pick.random() < 0.8 or "E" in used  # without one, no runtime takes capitals
    return terms, ", ".join(terms) + (" -> " + "".join(output) if arrow else "")


def random_shapes(pick: random.Random, terms: list[str], dots: int) -> list[list[int]]:
    """Sizes that fit; now and then an axis is 1 where the same label has another size elsewhere."""
    sizes = {letter: pick.randint(1, 4) for letter in LETTERS}
    under = [pick.randint(1, 3) for _ in range(dots)]
    shapes = []
    for term in terms:
        ones = {letter for letter in LETTERS if pick.random() < 0.2}
        before, ellipsis, after = term.partition("...")
        shape = [1 if c in ones else sizes[c] for c in before]
        if ellipsis:
            shape += [1 if pick.random() < 0.2 else n for n in under]
        shapes.append(shape + [1 if c in ones else sizes[c] for c in after])
    return shapes


def einsum(equation: str, dtype: int, shapes: list[list[int]], *, dynamic: bool) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(
            f"x{i}", dtype, [f"d{i}_{j}" if dynamic else n for j, n in enumerate(shape)]
        )
        for i, shape in enumerate(shapes)
    ]
    node = helper.make_node("Einsum", [i.name for i in inputs], ["y"], equation=equation)
    outputs = [helper.make_tensor_value_info("y", dtype, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_any_contraction_is_what_numpy_makes_of_it(dynamic: bool) -> None:
    pick, numbers = random.Random(7), np.random.default_rng(7)
    for _ in range(SUBSCRIPTS):
        terms, equation = random_equation(pick)
        dots = pick.randint(0, 2)
        dtype = pick.choice([TensorProto.DOUBLE, TensorProto.INT64])
        shapes = random_shapes(pick, terms, dots)
        model = einsum(equation, dtype, shapes, dynamic=dynamic)
        result = surgeon.apply(model, "einsum-to-matmul", verify=False)
        assert "Einsum" not in result.report.after, f"{equation}: {result.report.misses}"
        session = Session(result.model.to_proto())
        for sizes in [shapes, random_shapes(pick, terms, dots)] if dynamic else [shapes]:
            kind = helper.tensor_dtype_to_np_dtype(dtype)
            feeds = {
                f"x{i}": np.asarray(9 * numbers.normal(size=shape), kind)
                for i, shape in enumerate(sizes)
            }
            expected = np.einsum(equation, *feeds.values())
            got = session.run(feeds)["y"]
            assert got.shape == expected.shape, f"{equation} of {sizes}"
            assert np.allclose(got, expected, rtol=1e-9, atol=1e-9), f"{equation} of {sizes}"


@pytest.mark.parametrize("name", ["INT8", "UINT16", "UINT32", "UINT64"])
def test_sums_of_integers_wrap_at_their_own_width(name: str) -> None:
    dtype = getattr(TensorProto, name)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    model = einsum("ij,jk->ik", dtype, [[2, 9], [9, 3]], dynamic=False)
    result = surgeon.apply(model, "einsum-to-matmul", verify=False)
    draw = np.random.default_rng(3)
    top = np.iinfo(kind).max
    x, z = (draw.integers(top // 2, top, s, dtype=kind) for s in ((2, 9), (9, 3)))
    got = Session(result.model.to_proto()).run({"x0": x, "x1": z})["y"]
    with np.errstate(over="ignore"):
        expected = (x[:, :, None] * z[None]).sum(1, dtype=kind)
    assert got.dtype == kind
    assert (got == expected).all()


def test_an_ellipsis_that_the_output_lacks_is_summed_over() -> None:
    shapes = [[2, 3, 4], [3, 4]]
    x, z = (np.random.default_rng(5).normal(size=shape) for shape in shapes)
    for equation, wanted in [
        ("...i,...i->i", (x * z).sum((0, 1))),
        ("a...,b...->ab", np.einsum("ast,bt->ab", x, z)),
    ]:
        model = einsum(equation, TensorProto.DOUBLE, shapes, dynamic=True)
        result = surgeon.apply(model, "refused-forms")
        assert result.report.status == "equivalent", result.report.verdict
        got = Session(result.model.to_proto()).run({"x0": x, "x1": z})["y"]
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
