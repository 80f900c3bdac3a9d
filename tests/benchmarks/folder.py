"""A large folder of strangers' models: right outcomes, kill -9, memory, throughput.

Run: make batch, or
    python tests/benchmarks/folder.py CORPUS --files 2000 --hostile 100 --kills 3
    python tests/benchmarks/folder.py CORPUS --files 600 --hostile 0 --kills 0 --compare-jobs

CORPUS is a folder of models; where it has an `index.jsonl` with recorded inputs and outputs,
repaired models have to give these. One run goes through, one is killed as often as `--kills` says,
each time at a random moment, and taken up again; what both leave in DEST has to be the same. Linux
only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
TIMES = ("seconds", "fresh")  # what may differ between two runs


def choose(corpus: Path, zoo: Path, count: int) -> dict[str, dict[str, Any]]:
    """Copy so many models, evenly spread; the index's row of each, or an empty one."""
    index = corpus / "index.jsonl"
    lines = map(json.loads, index.read_text().splitlines()) if index.exists() else ()
    known = {row["file"]: row for row in lines if row.get("file")}
    names = sorted(p.relative_to(corpus).as_posix() for p in corpus.rglob("*.onnx"))
    count = min(count, len(names))
    picked = [names[i * len(names) // count] for i in range(count)]
    for name in picked:
        to = zoo / "corpus" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(corpus / name, to)
    return {f"corpus/{name}": known.get(name, {}) for name in picked}


# ------------------------------------------------------------------------------------- runs


class Watched:
    """A run of `surgeon batch`, and what its parent process takes."""

    def __init__(self, recipe: str, zoo: Path, dest: Path, *options: str) -> None:
        command = [sys.executable, "-m", "surgeon", "batch", recipe, str(zoo), str(dest)]
        self.began = time.monotonic()
        self.memory: list[int] = []  # bytes, every half second
        self.process = subprocess.Popen(
            [*command, *options, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it ended; False where the time was over first."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.process.poll() is None:
            if until is not None and time.monotonic() > until:
                return False
            self.memory.append(_memory(self.process.pid))
            time.sleep(0.5 if until is None else min(0.5, max(0.0, until - time.monotonic())))
        self.seconds = time.monotonic() - self.began
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode(errors="replace")
        if self.process.returncode not in (0, 1):
            raise SystemExit(f"the run ended with {self.process.returncode}: {said}")
        return True

    def kill(self) -> list[int]:
        """End it with SIGKILL; the workers that outlive it by more than a few seconds."""
        workers = list(_children(self.process.pid))
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for _ in range(50):
            alive = [pid for pid in workers if _memory(pid)]
            if not alive:
                break
            time.sleep(0.1)
        return alive


def _memory(pid: int) -> int:
    """Bytes in use; 0 where there is no such process, or it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)


def _children(pid: int) -> Iterator[int]:
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, listed.read_text().split())


# ---------------------------------------------------------------------------- what is compared


def left(dest: Path) -> dict[str, bytes]:
    """Every file in DEST but the report."""
    files = (path for path in dest.rglob("*") if path.is_file())
    found = {os.fsencode(path.relative_to(dest)): path.read_bytes() for path in files}
    return {
        os.fsdecode(name): data for name, data in found.items() if not name.startswith(b"report.")
    }


def told(dest: Path) -> list[dict[str, Any]]:
    """The rows of the report."""
    return [json.loads(line) for line in (dest / "report.jsonl").read_text().splitlines()]


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without what differs between two runs."""
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def faults(
    zoo: Path, dest: Path, corpus: Path, known: dict[str, Any], hostile: dict[str, frozenset[str]]
) -> Iterator[str]:
    """Whatever is not as it should be in DEST."""
    rows = {row["name"]: row for row in told(dest)}
    if missing := (known.keys() | hostile.keys()) ^ rows.keys():
        yield f"not in the report, or not in the folder: {sorted(missing)[:5]}"
    for name, row in rows.items():
        there = (dest / name).is_file()
        if there != (row["outcome"] in ("repaired", "unchanged")):
            yield f"{name!r} is {row['outcome']}, and {'there' if there else 'not there'}"
        if name in hostile and row["outcome"] not in hostile[name]:
            yield f"{name!r} is {row['outcome']} ({row['reason'][:200]})"
        if name in known and row["outcome"] not in ("repaired", "unchanged", "refused"):
            yield f"{name!r} is {row['outcome']} ({row['reason'][:200]})"
        if (
            row["outcome"] == "unchanged"
            and (dest / name).read_bytes() != (zoo / name).read_bytes()
        ):
            yield f"{name!r} is unchanged, and another file"
        if row["outcome"] == "repaired" and name in known:
            wrong = _wrong(dest / name, zoo / name, corpus, known[name].get("npz") or ())
            if wrong and known[name].get("ort_loads"):
                yield f"{name!r}: {wrong}"
            elif wrong:  # the exported file may be at fault: nothing here runs it
                print(f"unlike PyTorch, and the export does not load: {name}: {wrong}", flush=True)


def _wrong(mended: Path, original: Path, corpus: Path, recorded: Any) -> str:
    """Where a repaired model does not load, or gives other outputs than the original's."""
    import numpy as np
    import onnx

    from surgeon.runtime import NotRunnable, RunFailed, Session

    if any(node.domain == "org.pytorch.aten" for node in onnx.load(mended).graph.node):
        return "has ATen nodes, and is called repaired"
    session = Session(mended)
    try:
        old: Session | None = Session(original)
    except NotRunnable:
        old = None
    for name in recorded[:1]:  # the export's own inputs
        with np.load(corpus / name) as data:
            feeds = {port.name: data[f"in.{port.name}"] for port in session.inputs}
            wanted = [data[key] for key in data.files if key.startswith("out.")]
        with contextlib.suppress(RunFailed):  # then what was recorded counts
            wanted = wanted if old is None else list(old.run(feeds).values())
        for got, want in zip(session.run(feeds).values(), wanted, strict=True):
            got, want = np.asarray(got), np.asarray(want)
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"gives {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
            if want.dtype.kind in "fc" and not np.allclose(
                got, want, rtol=1e-3, atol=1e-4 * float(np.abs(want).max(initial=0)), equal_nan=True
            ):
                return "gives other values"
            if want.dtype.kind not in "fc" and not np.array_equal(got, want):
                return "gives other values"
    return ""


# ------------------------------------------------------------------------------------- figures


def judged(args: argparse.Namespace, work: Path) -> bool:
    """One run that goes through, one that is killed; whether all is as it should be."""
    from hostile_files import make

    zoo = work / "zoo"
    known = choose(args.corpus, zoo, args.files)
    hostile = make(zoo / "hostile", args.hostile) if args.hostile else {}
    hostile = {f"hostile/{name}": outcomes for name, outcomes in hostile.items()}
    print(f"{len(known):,} models, {len(hostile)} hostile files, in {zoo}", flush=True)
    options = ("--jobs", str(args.jobs), "--timeout", str(args.timeout))

    whole = Watched(args.recipe, zoo, work / "whole", *options)
    whole.wait()
    print(f"one run: {whole.seconds:.0f} s, {_grown(whole.memory)}", flush=True)
    print(f"outcomes: {dict(Counter(row['outcome'] for row in told(work / 'whole')))}", flush=True)
    wrong = list(faults(zoo, work / "whole", args.corpus, known, hostile))

    chance = random.Random(args.seed)
    share = whole.seconds / (args.kills + 1)
    for number in range(args.kills):
        run = Watched(args.recipe, zoo, work / "killed", *options)
        if run.wait(2 + chance.uniform(0.2, 1.0) * share):
            print(f"kill {number + 1} came too late: the run was done", flush=True)
            continue
        if alive := run.kill():
            wrong.append(f"workers outlive their parent: {alive}")
        at = time.monotonic() - run.began
        print(f"killed after {at:.1f} s, {len(left(work / 'killed')):,} files in DEST", flush=True)
    if args.kills:
        last = Watched(args.recipe, zoo, work / "killed", *options)
        last.wait()
        old = sum(not row["fresh"] for row in told(work / "killed"))
        print(f"resumed: {last.seconds:.0f} s, {old:,} rows from before, {_grown(last.memory)}")
        wrong.extend(_differences(work / "whole", work / "killed"))
    for each in wrong:
        print(f"WRONG: {each}")
    return not wrong


def _grown(memory: list[int]) -> str:
    """The parent's memory after its start, in the middle and at the end."""
    settled = [size >> 10 for size in memory if size][4:] or [0]
    first, middle, last = settled[0], settled[len(settled) // 2], settled[-1]
    return f"the parent's memory {first:,} KB, {middle:,} KB, {last:,} KB, at most {max(settled):,}"


def _differences(one: Path, other: Path) -> Iterator[str]:
    a, b = left(one), left(other)
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) != b.get(name):
            yield f"DEST differs: {name!r}"
    for first, second in zip(untimed(told(one)), untimed(told(other)), strict=True):
        if first != second:
            yield f"rows differ: {first} {second}"


def throughput(args: argparse.Namespace, work: Path) -> bool:
    """Files a second with one job and with two, in turn, three times; prints the medians."""
    zoo = work / "zoo"
    known = choose(args.corpus, zoo, args.files)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(3):
        for jobs in (1, 2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = Watched(args.recipe, zoo, work / f"out-{turn}-{jobs}", "--jobs", str(jobs))
            run.wait()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            rates[jobs].append(len(known) / run.seconds)
            load = os.getloadavg()[0]
            print(
                f"--jobs {jobs}: {run.seconds:.1f} s, {rates[jobs][-1]:.1f} files a second, "
                f"CPU {cpu:.1f} s, load {load:.1f}",
                flush=True,
            )
    one, two = (sorted(rates[jobs])[1] for jobs in (1, 2))
    print(f"two jobs do {two / one:.2f} times what one does")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder of models, with or without index.jsonl")
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--hostile", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--recipe", default="aten")
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--compare-jobs", action="store_true", help="measure one job against two")
    parser.add_argument("--work", type=Path, help="where to work; by default a temporary folder")
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp(prefix="surgeon-folder-"))
    work.mkdir(parents=True, exist_ok=True)
    print(f"seed {args.seed}", flush=True)
    good = throughput(args, work) if args.compare_jobs else judged(args, work)
    if good and args.work is None:
        shutil.rmtree(work)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
