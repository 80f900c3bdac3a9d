"""Models that would fill the memory or never end: no run of surgeon does either."""

import sys
from pathlib import Path

import pytest
from hostile_bombs import BOMBS, ONE, bomb, i64
from hostile_command import SECONDS, Runner, attempt, others, rules, save, surgeon
from hostile_models import endless_loop
from shares import every

__all__ = ["rules", "surgeon"]  # fixtures of `hostile_command`

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here")


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, BOMBS[kind]())
    if "Concats" not in kind:  # who runs such a model needs its memory
        attempt(surgeon, rules, path, (0, 3, 4))
    for recipe in (rules, "shape-chains"):
        attempt(surgeon, recipe, path, (0, 4), options=("--no-verify",))


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(BOMBS)[:: every(3)])
def test_a_bomb_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, BOMBS[kind]())
    others(surgeon, rules, path, kind, runs="Concats" not in kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({*list(BOMBS)[:: every(4)], "Range"}))
def test_a_rule_out_of_a_bomb(kind: str, surgeon: Runner, tmp_path: Path) -> None:
    model = BOMBS[kind]()
    path = save(tmp_path, model)
    end = model.graph.output[0].name
    answer = surgeon("recipes", "new", tmp_path / "made", "--of", path, "--to", end)
    printed = f"{kind}: {answer['code']} {answer['output'][:1500]}"
    assert answer["code"] in (0, 2, 3, 4, 7), printed
    assert answer["seconds"] < SECONDS, printed
    assert "Traceback" not in answer["output"], printed
    assert "surgeon has a bug" not in answer["output"], printed


@pytest.mark.slow
def test_a_loop_without_end_is_not_unrolled(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, endless_loop())
    attempt(surgeon, rules, path, (0,), options=("--no-verify",))


@pytest.mark.slow
def test_what_is_folded_has_a_limit(surgeon: Runner, tmp_path: Path) -> None:
    """400 MB of ones stay a node, where the recipe does not ask for more."""
    for op, tensors in (
        ("Tile", {"k": ONE, "s": i64(10_000, 10_000)}),
        ("Expand", {"k": ONE, "s": i64(10_000, 10_000)}),
        ("ConstantOfShape", {"s": i64(10_000, 10_000)}),
    ):
        path = save(tmp_path, bomb(op, *tensors, **tensors))
        attempt(surgeon, "shape-chains", path, (0,), options=("--no-verify",))
