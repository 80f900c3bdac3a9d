"""Batches of unequal lengths: packed, laid end to end, and filled up again."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from aten_node import Calls, agrees, each, stays

import surgeon

R = np.random.default_rng(11)
CALLS = Calls()


def of(*shape: int) -> np.ndarray[Any, Any]:
    return R.standard_normal(shape).astype(np.float32)


def line(*numbers: int) -> np.ndarray[Any, Any]:
    return np.asarray(numbers, np.int64)


def add(operator: str, *arguments: Any) -> None:
    CALLS.add(operator, *arguments, throughout=True)


X = of(3, 7, 4)
for first in (True, False):
    x = X if first else np.ascontiguousarray(X.swapaxes(0, 1))
    add("_pack_padded_sequence", x, line(7, 5, 2), first)
    add("_pack_padded_sequence", x[..., 0].copy(), line(4, 4, 1), first)
    add("_pack_padded_sequence", x[..., None].astype(np.int64), line(6, 1, 1), first)
    for total in (-1, 5, 8):
        add("_pad_packed_sequence", of(10, 4), line(3, 3, 2, 1, 1), first, -1.5, total)
    add("_pad_packed_sequence", of(10), line(3, 3, 2, 1, 1), first, 0.0, 6)
    add("_pad_packed_sequence", np.arange(20).reshape(10, 2) % 3 == 0, line(10), first, 1, 0)
for rows in (of(6, 2), of(6)):
    for room in (1, 3, 5):
        add("_jagged_to_padded_dense_forward", rows, [line(0, 2, 2, 6)], [room], -1.0)
for total_ in (6, None):
    add("_padded_dense_to_jagged_forward", of(3, 4, 2), [line(0, 2, 2, 6)], total_)
add("_padded_dense_to_jagged_forward", of(2, 3, 2), [line(0, 0, 0)], None)


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)


def test_jagged_along_two_axes() -> None:
    offsets = [line(0, 1, 2), line(0, 2, 6)]
    stays(
        "_jagged_to_padded_dense_forward",
        [of(6, 2), offsets, [2, 3], 0.0],
        [of(1, 2, 3, 2)],
        "it is jagged along 2 axes",
    )


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_over_lengths_known_at_run_time(kind: str) -> None:
    """What a scripted network holds: packed, taken step by step, and filled up again."""
    torch = pytest.importorskip("torch")
    many = kind == "LSTM"
    layer = getattr(torch.nn, kind)(4, 5, batch_first=True, bidirectional=True)
    states = ["h", "c"] if many else ["h"]
    names = [name for name, _ in layer.named_parameters()]
    operator = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind]
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[b,t,4] x, int64[b] lengths, {", ".join(f"float[2,b,5] {s}" for s in states)})
            => (float[b,u,10] y, int64[b] n)
            <bool yes = {{1}}, bool no = {{0}}, int64 one = {{1}}, double zero = {{0.0}},
             int64 none = {{-1}}> {{
            data, sizes = org.pytorch.aten._pack_padded_sequence (x, lengths, yes)
            hx = SequenceConstruct ({", ".join(states)})
            params = SequenceConstruct ({", ".join(names)})
            out, {", ".join(f"l{s}" for s in states)} = org.pytorch.aten.ATen
                <operator = "{operator}", overload_name = "data">
                (data, sizes, {"hx" if many else "h"}, params, yes, one, zero, no, yes)
            y, n = org.pytorch.aten._pad_packed_sequence (out, sizes, yes, zero, none)
        }}""")
    for name, weight in layer.named_parameters():
        array = weight.detach().numpy()
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    result = surgeon.apply(model, "aten").model.to_proto()
    assert {node.domain for node in result.graph.node} <= {""}
    session = ort.InferenceSession(result.SerializeToString())
    for lengths in ([7, 5, 2], [4, 4], [1], [6, 3, 3, 1]):
        x, state = of(len(lengths), 7, 4), [of(2, len(lengths), 5) for _ in states]
        feeds = {"x": x, "lengths": line(*lengths), **dict(zip(states, state, strict=True))}
        y, n = session.run(None, feeds)
        with torch.no_grad():
            packed = torch.nn.utils.rnn.pack_padded_sequence(
                torch.from_numpy(x), torch.tensor(lengths), batch_first=True
            )
            hx = tuple(map(torch.from_numpy, state))
            found, _ = layer(packed, hx if many else hx[0])
            wanted, _ = torch.nn.utils.rnn.pad_packed_sequence(found, batch_first=True)
        assert n.tolist() == lengths
        np.testing.assert_allclose(y, wanted.numpy(), atol=1e-5)
