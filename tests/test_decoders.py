"""Decoders as onnxruntime-genai writes them: grouped attention with a cache of keys and values."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import surgeon
from surgeon.runtime import Session

TEXT = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (int64[b, s] input_ids, int64[b, t] attention_mask,
   float[b, 2, p, 16] past_key, float[b, 2, p, 16] past_value)
  => (float[b, s, 64] y, float[b, 2, t, 16] present_key, float[b, 2, t, 16] present_value)
  <float[30, 64] table, float[64, 64] wq, float[64, 32] wk, float[64, 32] wv,
   float[64, 8] cosine, float[64, 8] sine, int64[1] one = {1}, int64 axis = {1}> {
  x = Gather (table, input_ids)
  q = MatMul (x, wq)
  k = MatMul (x, wk)
  v = MatMul (x, wv)
  counted = ReduceSum (attention_mask, one)
  last = Sub (counted, one)
  lengths = Cast <to = 6> (last)
  shape = Shape (attention_mask)
  size = Gather (shape, axis)
  total = Cast <to = 6> (size)
  y, present_key, present_value = com.microsoft.GroupQueryAttention
    <num_heads = 4, kv_num_heads = 2, do_rotary = 1>
    (q, k, v, past_key, past_value, lengths, total, cosine, sine)
}"""


@pytest.fixture(scope="module")
def decoder() -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT)
    rng = np.random.default_rng(0)
    for value in model.graph.value_info:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(dims).astype(np.float32) * np.float32(0.3)
        model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    del model.graph.value_info[:]
    return model


def step(batch: int, length: int, past: int, mask: list[list[int]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    cache = (batch, 2, past, 16)
    return {
        "input_ids": rng.integers(0, 30, (batch, length)),
        "attention_mask": np.array(mask, np.int64),
        "past_key": rng.standard_normal(cache).astype(np.float32),
        "past_value": rng.standard_normal(cache).astype(np.float32),
    }


STEPS = {
    "a prompt": step(2, 5, 0, [[1] * 5] * 2),
    "one more": step(2, 1, 6, [[1] * 7] * 2),
    "several more": step(1, 3, 4, [[1] * 7]),
}
PADDED = {
    "a padded prompt": step(2, 5, 0, [[1] * 5, [1, 1, 1, 0, 0]]),
    "one more of each": step(2, 1, 6, [[1] * 7, [1] * 4 + [0] * 3]),
    "into a buffer": step(1, 1, 9, [[1] * 5]),
}


def same(before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    wanted, found = (Session(each).run(feeds) for each in (before, after))
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)


def test_sequences_of_any_length(decoder: onnx.ModelProto) -> None:
    result = surgeon.apply(decoder, "contrib", "clean")
    assert result.report.verdict.status == "equivalent"
    assert not result.report.refusals
    proto = result.model.to_proto()
    assert {node.domain for node in proto.graph.node} == {""}
    for feeds in (STEPS | PADDED).values():
        same(decoder, proto, feeds)


def test_a_full_cache_is_a_concat(decoder: onnx.ModelProto) -> None:
    """Compared at fixed sizes, as accelerators want them, where the mask is full."""
    shape = {
        "input_ids": [1, 1],
        "attention_mask": [1, 7],
        "past_key": [1, 2, 6, 16],
        "past_value": [1, 2, 6, 16],
    }
    given = {"shape": shape, "inputs": {"attention_mask": "ones"}}
    result = surgeon.apply(decoder, "full-cache", "contrib", "clean", **given)
    assert result.report.verdict.status == "equivalent"
    assert any("no sequence is padded" in (c.contract or "") for c in result.report.changes)
    kinds = {node.op_type for node in result.model.to_proto().graph.node}
    assert "Concat" in kinds
    assert not kinds & {"GatherElements", "GroupQueryAttention", "ReduceSum"}
    loose = surgeon.apply(decoder, "full-cache", "contrib", verify=False).model.to_proto()
    for feeds in STEPS.values():
        same(decoder, loose, feeds)


def test_a_padded_sequence_breaks_the_contract(decoder: onnx.ModelProto) -> None:
    with pytest.raises(surgeon.VerifyError, match="no sequence is padded"):
        surgeon.apply(decoder, "full-cache")
