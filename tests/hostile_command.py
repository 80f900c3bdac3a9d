"""`surgeon` in a process of its own with limits, and what holds of every run of it.

Linux and macOS only (see `hostile_runs`).
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from hostile_models import network
from shares import every

EVERY = every(8)  # kind goes through the other commands too
SECONDS = 30  # these machines may be busy; alone, the slowest takes a few
SPACE = 6 << 30  # of addresses: onnxruntime and openblas reserve much that they never touch
PEAK = 1 << 30  # of memory in use
RECIPE = """\
surgeon: 1
name: double
steps:
  - rules:
      - id: double-neg
        why: Twice turned round is where it was.
        exact: bit
        match: |
          h = Neg (x)
          y = Neg (h)
        replace: y = Identity (x)
      - id: nothing-added
        why: A condition that reads values.
        exact: rounding
        match: y = Add (x, c)
        where: [c.value == 0]
        replace: y = Identity (x)
  - fold: {}
"""


class Runner:
    """A process that runs `surgeon` with limits."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("hostile_runs.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: object, seconds: int = SECONDS) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = {"arguments": list(map(str, arguments)), "seconds": seconds, "memory": SPACE}
        print(json.dumps(command), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def surgeon() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    assert runner.process.stdin is not None
    runner.process.stdin.close()
    runner.process.wait(timeout=SECONDS)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "double.yaml"
    path.write_text(RECIPE)
    return path


def sampled(kinds: Iterable[str]) -> list[Any]:
    """One kind in three before a commit; the others are slow."""
    return [
        pytest.param(kind, marks=[pytest.mark.slow] if index % 3 else [])
        for index, kind in enumerate(kinds)
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sane(answer: dict[str, Any], what: str) -> None:
    """What holds of every run: it ended by itself, soon, in bounds, without noise."""
    output = answer["output"]
    shown = f"{what}: {answer['code']} {output[:1500]}"
    assert answer["code"] >= 0, f"killed by a signal, or by the clock: {shown}"
    assert answer["seconds"] < SECONDS, shown
    assert answer["peak"] < PEAK, f"{answer['peak'] >> 20} MB: {shown}"
    assert "Traceback" not in output, shown
    assert "surgeon has a bug" not in output, shown
    assert "\x1b" not in output, shown
    assert "\x07" not in output, shown
    assert len(output) < 20_000, shown
    if answer["code"]:
        assert len(re.findall("^error: ", output, re.MULTILINE)) == 1, shown
        assert "\n   at: " in output, shown
        assert "\n mend: " in output, shown


def attempt(
    surgeon: Runner,
    rules: object,
    model: Path,
    codes: tuple[int, ...],
    phrase: str = "",
    options: tuple[str, ...] = (),
) -> str:
    """Apply, and see that it ended well or wrote nothing; gives what it printed."""
    folder = model.parent
    out = folder / "o.onnx"
    before = contents(folder)
    answer = surgeon("apply", rules, model, out, *options)
    sane(answer, model.name)
    printed = str(answer["output"])
    assert answer["code"] in codes, printed
    assert phrase in printed, printed
    after = contents(folder)
    written = after.pop("o.onnx", None)
    assert after == before, f"{sorted(after)} {sorted(before)}"
    if answer["code"]:
        assert written is None, "a failure left an output"
    else:
        assert written is not None
        onnx.ModelProto.FromString(written)
        out.unlink()
    return printed


def save(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "in.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def others(surgeon: Runner, rules: Path, path: Path, what: str, *, runs: bool = True) -> None:
    """The commands beside `apply`: an answer or one error, soon, and nothing written here."""
    before = contents(path.parent)
    for arguments in (
        ("inspect", path),
        ("diff", path, path),
        ("explain", rules, path),
        *([("verify", path, path, "--timeout", 10)] if runs else []),
    ):
        answer = surgeon(*arguments)
        printed = f"{what}: {arguments[0]}: {answer['code']} {answer['output'][:1500]}"
        assert answer["code"] in (0, 1, 3, 4, 7), printed  # 7: it takes longer than it may
        assert answer["seconds"] < SECONDS, printed
        assert "Traceback" not in answer["output"], printed
        assert "surgeon has a bug" not in answer["output"], printed
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", answer["output"]), (
            printed
        )
        assert contents(path.parent) == before, printed


def batch_of(surgeon: Runner, rules: Path, folder: Path, count: int) -> None:
    """Each of the broken models gets a row, and a good one among them its result."""
    dest = folder.parent / "dest"
    (folder / "good.onnx").write_bytes(network().SerializeToString())
    before = contents(folder)
    answer = surgeon("batch", rules, folder, dest, "--timeout", 60, seconds=600)
    assert answer["code"] == 1, answer["output"]
    assert "Traceback" not in answer["output"]
    rows = [json.loads(line) for line in (dest / "report.jsonl").read_text().splitlines()]
    assert len(rows) == count + 1
    found = {row["name"]: row["outcome"] for row in rows}
    assert found["good.onnx"] == "repaired"
    assert not {"crashed", "timeout", "failed"} & set(found.values()), found
    assert contents(folder) == before
