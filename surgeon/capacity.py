"""What the machine has, and what a model will need of it."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

FLOOR = 4 << 30  # bytes of address space: onnxruntime and its threads map 1 GiB before any model
MEMINFO = Path("/proc/meminfo")
_COPIES = 7  # of a model at once, measured at 200 MB: file, protobufs, a session for each side
_WORKER = 300 << 20  # bytes of an idle worker with what it imported


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory this process may use: the machine's, or its container's if that is less."""
    total = 8 << 30  # where the system does not say
    if sys.platform != "win32":
        with contextlib.suppress(ValueError, OSError):
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total


def available() -> int:
    """Bytes of memory that are free or can be freed at once; all, where nobody says."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) << 10
    return memory()


def need(model: int) -> int:
    """Bytes of memory that a model of so many bytes, its data included, is expected to need."""
    return _WORKER + _COPIES * model


def limit(model: int, jobs: int) -> int:
    """The address space that a worker is given where nobody says: a share, or what it needs."""
    return max(FLOOR, memory() // jobs, min(memory(), need(model)))


def share() -> int:
    """The address space of a worker that runs alone: the rest is for the process that asks it.

    No more than is free now: what others hold would be taken from them, or from us.
    """
    return max(FLOOR, min(memory(), available()) * 4 // 5)
