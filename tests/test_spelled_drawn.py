"""Operators spelled out for a list, over drawn arguments, in onnxruntime before and after."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from packaging.version import Version

import surgeon
from surgeon.runtime import RunFailed, Session

TRIES = 12
Feeds = dict[str, np.ndarray[Any, Any]]


def spelled_out(text: str, recipe: str, opset: int) -> tuple[Session, Session]:
    """The graph, and what a recipe makes of it, which is free of its last operator."""
    head = f'<ir_version: 8, opset_import: ["": {opset}]> '
    model = onnx.parser.parse_model(head + text)
    operator = model.graph.node[-1].op_type
    result = surgeon.apply(model, recipe, verify=False).model.to_proto()
    assert operator not in {node.op_type for node in result.graph.node}, text
    return Session(model), Session(result)


def same(pair: tuple[Session, Session], feeds: Feeds, **limits: float) -> None:
    """Both give the same, and fail where one does."""
    try:
        expected = pair[0].run(feeds)
    except RunFailed:
        with pytest.raises(RunFailed):
            pair[1].run(feeds)
        return
    got = pair[1].run(feeds)
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        if limits:
            assert np.allclose(got[name], array, equal_nan=True, **limits), feeds
        else:
            assert np.array_equal(got[name], array, equal_nan=array.dtype.kind == "f"), feeds


def listed(sizes: list[Any]) -> str:
    return ", ".join(map(str, sizes))


def some(pick: random.Random, sizes: list[int], letter: str) -> list[Any]:
    """Lengths, of which some are known at run time only; nothing is made of what is empty."""
    named = [not size or pick.random() < 0.4 for size in sizes]
    return [f"{letter}{n}" if named[n] else size for n, size in enumerate(sizes)]


@pytest.mark.parametrize("seed", range(TRIES))
def test_elements_are_gathered(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    sizes = [pick.randint(1, 4) for _ in range(pick.randint(1, 4))]
    axis = pick.randrange(-len(sizes), len(sizes))
    taken = [pick.randint(0, n) for n in sizes]
    taken[axis] = pick.choice([0, 1, 5])
    over, of = some(pick, taken, "t"), some(pick, sizes, "s")
    text = (
        f"g (float[{listed(of)}] x, int64[{listed(over)}] i) => (float[{listed(over)}] y) "
        f"{{ y = GatherElements <axis = {axis}> (x, i) }}"
    )
    pair = spelled_out(text, "indexing-decompose", pick.choice([11, 13, 17]))
    x, n = draw.normal(size=sizes).astype(np.float32), sizes[axis]
    places = draw.integers(-n, n, taken)
    same(pair, {"x": x, "i": places})
    for outside in (n, -n - 1):
        if places.size:
            places.flat[0] = outside
            same(pair, {"x": x, "i": places})
    other = (axis + 1) % len(sizes)
    if isinstance(over[other], str) and other != axis % len(sizes):
        taken[other] = sizes[other] + 1  # more than there are
        same(pair, {"x": x, "i": np.zeros(taken, np.int64)})


@pytest.mark.parametrize("seed", range(TRIES))
def test_lines_are_gathered(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    sizes = [pick.randint(1, 4) for _ in range(pick.randint(1, 4))]
    depth = pick.randint(1, len(sizes))
    batch = pick.randint(0, len(sizes) - depth)
    around = [*sizes[:batch], *(pick.randint(0, 3) for _ in range(pick.randint(0, 2)))]
    depth = min(depth, len(sizes) - batch)
    if len(around) == batch:
        around.append(2)
    of = some(pick, sizes, "s")
    over = [*of[:batch], *some(pick, around[batch:], "t")]
    made = [*over, *of[batch + depth :]]
    text = (
        f"g (float[{listed(of)}] x, int64[{listed([*over, depth])}] i) => "
        f"(float[{listed(made)}] y) {{ y = GatherND <batch_dims = {batch}> (x, i) }}"
    )
    pair = spelled_out(text, "indexing-decompose", pick.choice([12, 13, 17]))
    lengths = sizes[batch : batch + depth]
    places = np.stack([draw.integers(-n, n, around) for n in lengths], -1)
    x = draw.normal(size=sizes).astype(np.float32)
    same(pair, {"x": x, "i": places})
    if places.size:
        places.reshape(-1, depth)[0, -1] = lengths[-1]
        same(pair, {"x": x, "i": places})


@pytest.mark.parametrize("seed", range(TRIES))
def test_what_there_is_in_a_line(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    of, kind = pick.choice([("float", np.float32), ("int64", np.int64), ("int8", np.int8)])
    sizes = [pick.choice([0, 1, 7, "n"])] if pick.random() < 0.5 else [2, "n"]
    whole = "" if len(sizes) > 1 or pick.random() < 0.5 else "axis = 0, "
    if whole and sizes == [0]:
        sizes = [3]  # onnxruntime ends where there is nothing along an axis
    text = (
        f"g ({of}[{listed(sizes)}] x) => ({of}[k] y, int64[k] i, int64[l] r, int64[k] c) "
        f"{{ y, i, r, c = Unique <{whole}sorted = {pick.randint(0, 1)}> (x) }}"
    )
    pair = spelled_out(text, "indexing-decompose", pick.choice([11, 13, 17]))
    for length in (1, 6, 12) if whole else (0, 1, 6, 12):
        shape = [length if size == "n" else size for size in sizes]
        same(pair, {"x": draw.integers(-3, 4, shape).astype(kind)})


@pytest.mark.parametrize("seed", range(TRIES))
def test_the_first_of_few(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    of, kind = pick.choice([("float", np.float32), ("int64", np.int64)])
    length = pick.randint(1, 8)
    count, largest = pick.randint(2, 8), pick.randint(0, 1)
    count = min(count, length)
    text = (
        f"g ({of}[N, {length}, 2] x) => ({of}[N, {count}, 2] y, int64[N, {count}, 2] i) "
        f"<int64[1] k = {{{count}}}> {{ y, i = TopK <axis = 1, largest = {largest}> (x, k) }}"
    )
    pair = spelled_out(text, "indexing-decompose", pick.choice([11, 13, 17]))
    x = draw.integers(-3, 4, (3, length, 2)).astype(kind)
    same(pair, {"x": x})
    if kind == np.float32:
        x.flat[:2] = [np.inf, -np.inf]
        same(pair, {"x": x})
        x[draw.random(x.shape) < 0.3] = np.nan  # ONNX does not say where in the order
        found = pair[1].run({"x": x})
        assert np.array_equal(np.take_along_axis(x, found["i"], 1), found["y"], equal_nan=True)
        known = np.sort(np.where(np.isnan(x), np.inf, x if not largest else -x), 1)[:, :count]
        got = found["y"] if not largest else -found["y"]
        assert np.array_equal(np.where(np.isnan(got), np.inf, got), known)
        assert all(
            len(set(line)) == count for line in found["i"].transpose(0, 2, 1).reshape(-1, count)
        )


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("seed", range(TRIES))
def test_where_the_greatest_and_the_least_stand(seed: int, operator: str) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    of, kind = pick.choice([("float", np.float32), ("int32", np.int32), ("uint8", np.uint8)])
    sizes: list[Any] = [pick.randint(1, 5) for _ in range(pick.randint(1, 4))]
    axis, keeps = pick.randrange(-len(sizes), len(sizes)), pick.randint(0, 1)
    declared = some(pick, sizes, "s")
    declared[axis] = sizes[axis]
    made: list[Any] = [*declared]
    made[axis] = 1
    if not keeps:
        del made[axis % len(sizes)]
    opset = pick.choice([9, 11, 12, 13, 17])
    last = f", select_last_index = {pick.randint(0, 1)}" if opset >= 12 else ""
    text = (
        f"g ({of}[{listed(declared)}] x) => (int64[{listed(made)}] y) "
        f"{{ y = {operator} <axis = {axis}, keepdims = {keeps}{last}> (x) }}"
    )
    if opset < 13 and kind == np.uint8 and operator == "ArgMin":
        of, kind = "float", np.float32  # which onnxruntime has not
        text = text.replace("uint8", "float")
    pair = spelled_out(text, "max-min-decompose", opset)
    x = draw.integers(0, 3, sizes).astype(kind)
    same(pair, {"x": x})
    if kind == np.float32:
        x.flat[: x.size // 2 + 1] = -np.inf
        same(pair, {"x": x})


@pytest.mark.parametrize("seed", range(TRIES))
def test_bins_of_regions(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    sizes = [pick.randint(1, 2), pick.randint(1, 3), pick.randint(1, 9), pick.randint(1, 9)]
    opset, high, wide = pick.choice([11, 13, 16, 17]), pick.randint(1, 3), pick.randint(1, 3)
    mode = f'coordinate_transformation_mode = "{pick.choice(["", "output_"])}half_pixel", '
    declared = some(pick, sizes, "s")
    text = (
        f"g (float[{listed(declared)}] x, float[k, 4] r, int64[k] b) => "
        f"(float[k, {declared[1]}, {high}, {wide}] y) {{ y = RoiAlign <"
        f"{mode if opset >= 16 else ''}output_height = {high}, output_width = {wide}, "
        f"sampling_ratio = {pick.randint(1, 3)}, spatial_scale = {pick.choice([0.25, 1.0])}>"
        "(x, r, b) }"
    )
    pair = spelled_out(text, "roi-align-decompose", opset)
    for count in (0, 1, 6):
        first = draw.uniform(-6, 40, (count, 2))
        regions = np.concatenate([first, first + draw.uniform(-2, 30, (count, 2))], 1)
        feeds = {
            "x": draw.normal(size=sizes).astype(np.float32),
            "r": regions.astype(np.float32),
            "b": draw.integers(0, sizes[0], count),
        }
        same(pair, feeds, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(TRIES))
def test_means_of_windows(seed: int) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    rank = pick.randint(1, 3)
    kernel = [pick.randint(1, 3) for _ in range(rank)]
    sizes = [pick.randint(k, 7) for k in kernel]
    pads = [pick.randint(0, k - 1) for k in kernel * 2]
    strides = [pick.randint(1, 3) for _ in range(rank)]
    text = (
        f"g (float[N, 2, {listed(sizes)}] x) => (float[N, 2, {listed(list('abc'[:rank]))}] y) {{ "
        f"y = AveragePool <kernel_shape = {kernel}, pads = {pads}, strides = {strides}, "
        f"count_include_pad = {pick.randint(0, 1)}> (x) }}"
    )
    pair = spelled_out(text, "basics-decompose", pick.choice([9, 11, 17, 19]))
    same(pair, {"x": draw.normal(size=[2, 2, *sizes]).astype(np.float32)}, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean"])
@pytest.mark.parametrize("seed", range(TRIES))
def test_sums_along_axes(seed: int, operator: str) -> None:
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    sizes = [pick.randint(1, 4) for _ in range(pick.randint(2, 4))]
    rank = len(sizes)
    axes = sorted(pick.sample(range(rank), pick.randint(1, rank)))
    declared = some(pick, sizes, "s")
    keeps = pick.randint(0, 1)
    for axis in axes:
        declared[axis] = sizes[axis]
    made = [1 if n in axes else d for n, d in enumerate(declared) if keeps or n not in axes]
    told = [axis - rank if pick.random() < 0.3 else axis for axis in axes]
    text = (
        f"g (float[{listed(declared)}] x) => (float[{listed(made)}] y) "
        f"{{ y = {operator} <axes = {told}, keepdims = {keeps}> (x) }}"
    )
    pair = spelled_out(text, "sums-to-matmul", 11)
    x = draw.normal(size=sizes).astype(np.float32)
    same(pair, {"x": x}, rtol=1e-5, atol=1e-6)
    x.flat[0] = np.inf
    same(pair, {"x": x}, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("remains", [0, 1])
def test_remainders_by_what_is_computed(kind: str, remains: int) -> None:
    draw, ends = np.random.default_rng(remains), np.iinfo(kind)
    text = f"g ({kind}[N] x, {kind}[N] b) => ({kind}[N] y) {{ y = Mod <fmod = {remains}> (x, b) }}"
    pair = spelled_out(text, "arithmetic-decompose", 13)
    x = draw.integers(-20, 20, 60).astype(kind)
    by = (draw.integers(1, 9, 60) * draw.choice([-1, 1], 60)).astype(kind)
    x[:4], by[:4] = [ends.max, ends.min, ends.max, -5], [ends.max, ends.max, ends.min, ends.min]
    if Version(onnxruntime.__version__) < Version("1.30") and remains and kind == "int64":
        x[:4] = by[:4] = 7  # it divides them as doubles
    same(pair, {"x": x, "b": by})


@pytest.mark.parametrize(
    ("operator", "recipe"),
    [
        ("Asinh", "arithmetic-decompose"),
        ("Acosh", "arithmetic-decompose"),
        ("Atanh", "arithmetic-decompose"),
        ("Sign", "basics-decompose"),
    ],
)
def test_functions_of_a_number(operator: str, recipe: str) -> None:
    draw = np.random.default_rng(0)
    ends = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-38]
    drawn = draw.normal(size=500) * 10.0 ** draw.uniform(-40, 37, 500)
    x = np.asarray([*ends, *drawn, *draw.uniform(-1, 1, 200), *draw.uniform(1, 20, 200)])
    pair = spelled_out(f"g (float[N] x) => (float[N] y) {{ y = {operator} (x) }}", recipe, 13)
    same(pair, {"x": x.astype(np.float32)}, rtol=3e-6, atol=5e-7)
