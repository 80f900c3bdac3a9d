"""Graphs in which rules fire, changed a little, through `apply`: what comes out computes the same.

    python tests/twisting.py FOLDER [SECONDS] [SEED] [RECIPE ...]

The graphs are those of the cases beside all recipes, or of those named. A RECIPE that is a folder
stands for the .onnx files below it, which go through `clean`, `clean` beside one recipe, `any-batch
clean`, or a recipe for a runtime: so rules meet what others leave.

Into FOLDER goes each kind of finding once or twice, the model, what was made of it and the inputs,
and a line of `found.jsonl`. Its kinds: `error` (neither a result nor a `SurgeonError`), `fails` (a
rule raised), `trial` (the check of a rewrite refused it, which saves the result and not the rule),
`unloadable`, `unrunnable`, `differs`, `again` (`clean` makes something else of what it made),
`facts` (what was known of a value is not so), `hangs` and `crashes`.

Somebody has to look: onnxruntime takes an operand of no elements where ONNX does not, reads
attributes that say nothing legal, and has its own mind on NaN.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import select
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import truth
from onnx import helper
from twists import twisted

import surgeon
from surgeon.cases.reading import Case, read_cases
from surgeon.errors import SurgeonError
from surgeon.firing import FAILED
from surgeon.recipe import Recipe, bundled
from surgeon.runtime import Session
from surgeon.verify import compare_arrays

ROOT = Path(__file__).parent.parent
EACH = 12  # twists of a case in one process
PATIENCE = 150  # seconds for these
KEPT = 2  # findings of one kind
CLEAN = 0.15  # how often `clean` is tried in place of the case's own recipe
FACTS = 0.25  # how often what is known of the values is held against them too
STYLES = ("normal", "edges", "normal", "one", "wide", "not numbers")
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, 2.5, 3, 6, -3])
NO_NUMBERS = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30, 1e-40, 100, -100])
TOLERANCE = 1e-3
ALLOWED = ("approximate", "contract", "leftover")
# Where a rounding decides between numbers that are far apart.
STEPS = frozenset("Sign Floor Ceil Round Hardmax ArgMax ArgMin TopK Mod".split())
Feeds = dict[str, Any]
Drawn = tuple[onnx.ModelProto, list[Recipe]]


class Found(NamedTuple):
    """What is wrong with a twisted graph."""

    kind: str
    what: str
    rules: tuple[str, ...] = ()
    after: onnx.ModelProto | None = None
    feeds: Feeds | None = None


class Source(NamedTuple):
    """Where graphs come from, and the recipes that they go through."""

    title: str
    draw: Callable[[random.Random], Drawn]


def feeds_of(model: onnx.ModelProto, r: random.Random, style: str) -> Feeds:
    rng = np.random.default_rng(r.randrange(1 << 30))
    constants = {tensor.name for tensor in model.graph.initializer}
    sizes: dict[str, int] = {}
    feeds: Feeds = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor, shape = value.type.tensor_type, []
        for axis, dim in enumerate(tensor.shape.dim):
            drawn = r.choice([1, 2] if style == "one" else [1, 2, 3, 4, 5, 6, 8])
            name = dim.dim_param or f"{value.name}.{axis}"
            known = dim.HasField("dim_value")
            shape.append(dim.dim_value if known else sizes.setdefault(name, drawn))
        kind = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        feeds[value.name] = _drawn(rng, shape, kind, style)
    return feeds


def _drawn(rng: np.random.Generator, shape: list[int], kind: Any, style: str) -> Any:
    if kind.kind in "iub":
        low = -3 if kind.kind == "i" and rng.random() < 0.4 else 0
        return rng.integers(low, 2 if kind.kind == "b" else 4, shape).astype(kind)
    array = rng.standard_normal(shape)
    if style == "edges":
        array = rng.choice(EDGES, shape)
    elif style == "wide":
        array = array * rng.choice([1e-4, 1, 100, 3000], shape)
    elif style == "not numbers":
        array = np.where(rng.random(shape) < 0.25, rng.choice(NO_NUMBERS, shape), array)
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(kind)


def runs_of(model: onnx.ModelProto, r: random.Random) -> list[tuple[str, Feeds, Any]]:
    """Inputs and outputs, where onnxruntime takes the model and them."""
    if any(not value.type.HasField("tensor_type") for value in model.graph.input):
        return []
    told = onnx.ModelProto()
    told.CopyFrom(model)
    for value in told.graph.output:
        value.type.CopyFrom(helper.make_tensor_type_proto(1, []))  # the checker wants one, any
    try:
        onnx.checker.check_model(told)  # onnxruntime crashes on some that are none
        session = Session(model)
    except (SurgeonError, onnx.checker.ValidationError):
        return []
    found = []
    for style in STYLES:
        feeds = feeds_of(model, r, style)
        try:
            found.append((style, feeds, session.run(feeds)))
        except SurgeonError:
            continue
    return found


def tried(
    model: onnx.ModelProto, recipes: Sequence[Recipe], r: random.Random, current: Path
) -> Found | None:
    current.unlink(missing_ok=True)
    runs = runs_of(model, r)
    if not runs:
        return None
    current.write_bytes(model.SerializeToString())
    if r.random() < FACTS:
        points = truth.points(truth.symbols_of(model), 5)
        try:
            wrong = truth.hold(model, points).wrong
        except (SurgeonError, StopIteration):
            wrong = []
        if wrong:
            return Found("facts", wrong[0])
    try:
        result = surgeon.apply(model, *recipes, verify=False, check=True, allow=ALLOWED)
    except SurgeonError:
        return None
    report = result.report
    rules = tuple(sorted({change.rule for change in report.changes}))
    failed = [failure for failure in report.failures if failure.endswith(FAILED)]
    if report.refusals or failed:
        refusal = report.refusals[0] if report.refusals else None
        return (
            Found("trial", refusal.reason, (refusal.rule,))
            if refusal
            else Found("fails", failed[0])
        )
    after = result.handed.put_back(result.model.to_proto())
    exact = {change.exact for change in report.changes}
    if not rules:
        return None
    return _compared(runs, after, exact, rules) or _again(after, recipes, rules)


def _again(after: onnx.ModelProto, recipes: Sequence[Recipe], rules: Any) -> Found | None:
    """What `clean` makes of its own result."""
    if recipes[-1].name != "clean":
        return None
    found = surgeon.apply(after, *recipes, verify=False, allow=ALLOWED)
    before, behind = (
        Counter(node.op_type for node in proto.graph.node)
        for proto in (after, found.handed.put_back(found.model.to_proto()))
    )
    if before == behind:
        return None
    return Found("again", ", ".join({change.rule for change in found.report.changes}), rules, after)


def _compared(
    runs: list[tuple[str, Feeds, Any]], after: onnx.ModelProto, exact: set[Any], rules: Any
) -> Found | None:
    try:
        session = Session(after)
    except SurgeonError as error:
        return Found("unloadable", error.what, rules, after)
    steps = exact != {"bit"} and any(node.op_type in STEPS for node in after.graph.node)
    for style, feeds, wanted in runs:
        if (style == "not numbers" and exact != {"bit"}) or (style == "edges" and steps):
            continue
        try:
            found = session.run(feeds)
        except SurgeonError as error:
            return Found("unrunnable", error.what, rules, after, feeds)
        for name, array in wanted.items() if "approximate" not in exact else ():
            promise: Any = "bit" if exact == {"bit"} else "rounding"
            check = compare_arrays(name, array, found[name], exact=promise, tolerance=TOLERANCE)
            signs = (check.fault or "").startswith("zeros")  # onnxruntime's Where loses them
            if not check.agrees and not signs:
                return Found("differs", f"{style}: {check}", rules, after, feeds)
    return None


def _in_turn(r: random.Random) -> list[Recipe]:
    """Recipes for a whole network."""
    named = {name: Recipe.load(str(path)) for name, path in bundled().items()}
    plain = sorted(name for name, recipe in named.items() if not recipe.remakes)
    one, runtime = r.choice(plain), r.choice([name for name in plain if name.startswith("for-")])
    turns = [["clean"], ["clean", one], [one, "clean"], ["any-batch", "clean"], [runtime]]
    return [named[name] for name in r.choice(turns)]


def _of_case(case: Case, recipe: Recipe) -> Source:
    def draw(r: random.Random) -> Drawn:
        use = Recipe.load(str(bundled()["clean"])) if r.random() < CLEAN else recipe
        return case.before.model(case.values, r.choice(case.opsets)), [use]

    return Source(case.title, draw)


def _of_file(path: Path) -> Source:
    return Source(path.name, lambda r: (onnx.load(path), _in_turn(r)))


def several(source: Source, r: random.Random, current: Path) -> Iterator[Any]:
    """What was found in twists of one graph, with these and the model."""
    for _ in range(EACH):
        model, use = source.draw(r)
        names = [recipe.name for recipe in use]
        try:
            proto, said = twisted(model, r)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        try:
            found = tried(proto, use, r, current)
        except Exception:
            found = Found("error", traceback.format_exc()[-500:])
        if found is not None:
            after = found.after.SerializeToString() if found.after is not None else b""
            told = {"recipes": names, "case": source.title, "twists": said}
            yield found._replace(after=None), told, proto.SerializeToString(), after


def apart(source: Source, seed: int, folder: Path) -> list[Any]:
    """The same in a process of its own: a runtime's crash or hanging is a finding."""
    current = folder / "current.onnx"
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            found = list(several(source, random.Random(seed), current))
        except SurgeonError:
            found = []
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(write)
    begin, data = time.monotonic(), b""
    while time.monotonic() - begin < PATIENCE:
        if select.select([read], [], [], 1)[0]:
            if not (part := os.read(read, 1 << 20)):
                break
            data += part
    else:
        os.kill(pid, 9)
    late = time.monotonic() - begin >= PATIENCE
    os.close(read)
    os.waitpid(pid, 0)
    if data and not late:
        return list(pickle.loads(data))
    if not current.exists():  # the runtime did, on what nothing was made of
        return []
    told = {"recipes": [], "case": source.title, "twists": []}
    return [(Found("hangs" if late else "crashes", ""), told, current.read_bytes(), b"")]


def main(folder: Path, seconds: float = 300, seed: int = 0, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    r, seen, sources = random.Random(seed), Counter[Any](), []
    for path in sorted((ROOT / "recipes").glob("*.cases.yaml")):
        recipe = Recipe.load(str(path).replace(".cases", ""))
        rules = [rule.id for rule in (*recipe.rules, *recipe.changes)]
        if not recipe.remakes and (not names or recipe.name in names):
            sources += [_of_case(case, recipe) for case in read_cases(path, rules)]
    for name in filter(os.path.isdir, names):
        sources += [_of_file(path) for path in sorted(Path(name).rglob("*.onnx"))]
    end = time.monotonic() + seconds
    with (folder / "found.jsonl").open("a", encoding="utf-8") as log:
        while time.monotonic() < end:
            for found, told, before, after in apart(r.choice(sources), r.getrandbits(40), folder):
                what = re.sub(r"[\d.e+-]+", "#", found.what)[:60]
                seen[found.kind, found.rules, what] += 1
                if seen[found.kind, found.rules, what] > KEPT:
                    continue
                name = f"{seed}-{seen.total()}"
                (folder / f"{name}.before.onnx").write_bytes(before)
                if after:
                    (folder / f"{name}.after.onnx").write_bytes(after)
                if found.feeds:
                    np.savez(folder / f"{name}.npz", **found.feeds)
                line = {"name": name, "kind": found.kind, "rules": found.rules, **told}
                log.write(json.dumps({**line, "what": found.what}) + "\n")
                log.flush()
                print(f"{name} {found.kind} {', '.join(found.rules)}: {found.what[:160]}")


if __name__ == "__main__":
    _, where, *rest = sys.argv
    main(Path(where), *(float(n) for n in rest[:1]), *(int(n) for n in rest[1:2]), *rest[2:])
