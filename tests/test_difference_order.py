"""`surgeon diff` of files of other inner names: paired by the order of operators, damage found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from truth import parse
from typer.testing import CliRunner

from surgeon.cli import app
from surgeon.difference import Difference, difference
from surgeon.renaming import names_of_values, rename

LAYERS = 30


def network(damaged: int | None = None, axis: int = 1) -> onnx.ModelProto:
    """Layers of scales, of which many hold the same."""
    lines, scales, last = [], [], "x"
    for layer in range(LAYERS):
        number = float(layer % 3 + 1) + (1.0 if layer == damaged else 0.0)
        scales.append(f"float[4] w{layer} = {{{', '.join([str(number)] * 4)}}}")
        lines += [f"m{layer} = Mul ({last}, w{layer})", f"s{layer} = Sin (m{layer})"]
        last = f"s{layer}"
    lines += [f"p = Softmax <axis = {axis}> ({last})", "y = Neg (p)"]
    body = "\n".join(lines)
    return parse(f"g (float[n,4] x) => (float[n,4] y) <{', '.join(scales)}> {{ {body} }}")


def renamed(model: onnx.ModelProto, *, all_of_it: bool = False) -> onnx.ModelProto:
    """The model with other names of inner values, or of its inputs and outputs too."""
    ends = set() if all_of_it else {"x", "y"}
    names = dict.fromkeys(n for n in names_of_values(model.graph) if n and n not in ends)
    rename(model.graph, {name: f"t{place}" for place, name in enumerate(names)})
    return model


def compared(tmp_path: Path, one: onnx.ModelProto, other: onnx.ModelProto) -> Difference:
    onnx.save(one, tmp_path / "a.onnx")
    onnx.save(other, tmp_path / "b.onnx")
    return difference(tmp_path / "a.onnx", tmp_path / "b.onnx")


def valued(found: Difference) -> list[str]:
    """What is said of constants whose values differ."""
    return [f"{c.before} -> {c.after}" for c in found.initializers if "differ" in c.after]


@pytest.mark.parametrize("damaged", [0, 1, 14, 29])
def test_one_damaged_constant_is_found_among_all_new_names(tmp_path: Path, damaged: int) -> None:
    found = compared(tmp_path, network(), renamed(network(damaged)))
    assert valued(found) == [
        f"w{damaged}, float [4] -> float [4], 4 of 4 values differ, by 1 at most"
    ]
    assert not any((found.gone, found.new, found.replaced, found.changed))
    assert found.initializers[0].after.endswith("at most")
    assert found.by_order
    assert len(found.renamed) == 2 * LAYERS + 1


def test_inputs_and_outputs_may_have_other_names_too(tmp_path: Path) -> None:
    found = compared(tmp_path, network(), renamed(network(7), all_of_it=True))
    assert valued(found) == ["w7, float [4] -> float [4], 4 of 4 values differ, by 1 at most"]
    assert not any((found.gone, found.new, found.changed))
    assert len(found.interface) == 4


def test_a_changed_attribute_is_found_and_an_order_of_all_that_is_the_same_says_nothing(
    tmp_path: Path,
) -> None:
    found = compared(tmp_path, network(), renamed(network(axis=0)))
    assert [(c.before, c.after) for c in found.changed] == [("1", "0")]
    assert not any((valued(found), found.gone, found.new))
    same = compared(tmp_path, network(), renamed(network()))
    assert not any((same.changed, valued(same), same.gone, same.new))


def test_a_node_that_went_leaves_the_others_paired(tmp_path: Path) -> None:
    other = network(9)
    (sine,) = [node for node in other.graph.node if node.output[0] == "s12"]
    other.graph.node.remove(sine)
    (reader,) = [node for node in other.graph.node if "s12" in node.input]
    reader.input[0] = "m12"
    found = compared(tmp_path, network(), renamed(other))
    assert [c.before for c in found.gone] == ["Sin"]
    assert len(found.changed) == 1
    assert len(valued(found)) == 1
    assert valued(found)[0].startswith("w9, ")


def test_aliases_do_not_hinder_the_order(tmp_path: Path) -> None:
    aliased = network(9)
    for layer in range(LAYERS):
        alias = onnx.helper.make_node("Identity", [f"s{layer}"], [f"i{layer}"])
        readers = [node for node in aliased.graph.node if f"s{layer}" in node.input]
        readers[0].input[0] = f"i{layer}"
        aliased.graph.node.insert([*aliased.graph.node].index(readers[0]), alias)
    found = compared(tmp_path, network(), renamed(aliased))
    assert len(valued(found)) == 1
    assert not found.gone
    assert {c.after for c in found.new} == {"Identity"}


@pytest.mark.parametrize(
    ("without", "given", "counts"),
    [
        ("Elu", "Elu <alpha = 1.0>", False),
        ("Elu", "Elu <alpha = 2.0>", True),
        ("HardSigmoid <beta = 0.5>", "HardSigmoid <alpha = 0.2, beta = 0.5>", False),
    ],
)
def test_an_attribute_that_says_what_holds_without_it_does_not_count(
    tmp_path: Path, without: str, given: str, counts: bool
) -> None:
    graph = "g (float[n] x) => (float[n] y) {{ y = {} (x) }}"
    found = compared(tmp_path, *(parse(graph.format(each)) for each in (without, given)))
    assert len(found.changed) == counts
    assert ("attributes that say what holds without them" in found.aside) != counts


def test_a_default_that_changed_between_opsets_counts(tmp_path: Path) -> None:
    one, other = network(), network(axis=-1)
    del one.graph.node[-2].attribute[:]
    found = compared(tmp_path, one, other)
    assert [(c.before, c.after) for c in found.changed] == [("none", "-1")]


def test_other_networks_are_not_paired_by_order(tmp_path: Path) -> None:
    lines = " ".join(f"u{i} = Tanh ({f'u{i - 1}' if i else 'x'})" for i in range(40))
    other = parse(f"g (float[n,4] x) => (float[n,4] y) {{ {lines} y = Neg (u39) }}")
    found = compared(tmp_path, network(), other)
    assert not found.by_order
    assert len(found.new) == 40
    paths = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    shown = CliRunner().invoke(app, ["diff", *paths]).output
    assert f"\nsurgeon verify {' '.join(paths)} --bisect\n" in shown


def test_external_weights_of_other_names_are_compared(tmp_path: Path) -> None:
    for name, model in (("a", network()), ("b", renamed(network(5)))):
        (tmp_path / name).mkdir()
        for tensor in model.graph.initializer:
            array = np.repeat(numpy_helper.to_array(tensor), 500).reshape(500, 4)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        kept = {"save_as_external_data": True, "location": "w", "size_threshold": 0}
        onnx.save(model, tmp_path / name / "m.onnx", **kept)
    found = difference(tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx")
    assert [said.split(",")[0] for said in valued(found)] == ["w5"]
    assert not any((found.gone, found.new, found.changed))


def test_the_command_says_how_they_were_paired(tmp_path: Path) -> None:
    compared(tmp_path, network(), renamed(network(3)))
    shown = CliRunner().invoke(app, ["diff", str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")])
    assert "nodes paired by the order of operators: names differ." in shown.output
