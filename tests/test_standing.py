"""`inspect --node`: where a node stands."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from command import run
from truth import parse

from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.standing import standings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    proto = parse(
        """
        g (float[N,4] x, bool c) => (float[N,2] y, float[N,2] z)
          <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
          m = MatMul (x, w)
          y = LeakyRelu <alpha = 0.25> (m)
          z = If (c) <
            then_branch = one () => (float[N,2] a) { a = Neg (m) },
            else_branch = two () => (float[N,2] b) { b = Identity (y) }>
        }
        """
    )
    proto.graph.node[0].name = "product"
    proto.graph.node[0].metadata_props.add(
        key="pkg.torch.onnx.stack_trace",
        value='File "lib.py", line 1, in call\nFile "net.py", line 7, in forward\n    return x @ w',
    )
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    return path


def test_what_is_around_a_node(model: Path) -> None:
    (found,) = standings(Model.load(model), "product")
    assert (found.name, found.operator, found.inside) == ("product", "MatMul", False)
    assert [(w.value.name, w.value.shape, w.others, w.given) for w in found.inputs] == [
        ("x", ("N", 4), ("input",), True),
        ("w", (4, 2), ("weight",), True),
    ]
    (gives,) = found.outputs
    # the body of the If reads it too, from outside
    assert gives.others == ("LeakyRelu y", "If z", "Neg a")
    assert (gives.value.kind, gives.value.shape) == ("float32", ("N", 2))
    assert found.source == 'File "net.py", line 7, in forward'
    assert "linear-fuse" in found.recipes


@pytest.mark.slow
def test_a_node_is_found_by_value_operator_and_in_bodies(model: Path) -> None:
    loaded = Model.load(model)
    (leaky,) = standings(loaded, "y")
    assert (leaky.operator, leaky.attributes) == ("LeakyRelu", {"alpha": "0.25"})
    assert leaky.outputs[0].others == ("If z", "Identity b", "output")
    (branch,) = standings(loaded, "If")
    assert branch.attributes == {"then_branch": "a body", "else_branch": "a body"}
    (inner,) = standings(loaded, "a")
    assert (inner.operator, inner.inside) == ("Neg", True)
    with pytest.raises(RecipeError) as caught:
        standings(loaded, "MatMull")
    assert caught.value.mend == "Did you mean `MatMul`?"


def test_the_command_begins_what_follows(model: Path) -> None:
    said = run("inspect", model, "--node", "LeakyRelu").output
    words = " ".join(said.split())
    assert "of MatMul product" in words
    assert "OUT.onnx --to m" in words
    assert "OUT.onnx --from y" in words
    told = json.loads(run("inspect", model, "--node", "LeakyRelu", "--json").output)
    assert told[0]["outputs"][0]["others"] == ["If z", "Identity b", "output"]
    assert run("inspect", model, "--node", "nothing").exit_code == 2
