"""What this installation stands on, what does not go together, what is missing for which feature.

Versions are read from what was installed, and nothing heavy is imported: a broken onnxruntime must
not break the examination that finds it. What it says of pairs of versions was measured.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

SURGEON = "onnx-recipe-surgeon"

# All of these install the one package `onnxruntime`, over one another.
ONNXRUNTIMES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-directml",
    "onnxruntime-openvino",
    "onnxruntime-qnn",
    "ort-nightly",
)

# (IR version, opset) by minor version, measured. Of onnx: what it knows (`onnx.IR_VERSION`,
# `onnx.defs.onnx_opset_version()`); of onnxruntime: the highest of which it loads a model.
ONNX_KNOWS = {
    "1.18": (11, 23), "1.19": (12, 24), "1.20": (13, 25), "1.21": (13, 26), "1.22": (13, 27),
    "1.23": (14, 28),
}  # fmt: skip
ONNXRUNTIME_LOADS = {
    "1.20": (10, 21), "1.21": (10, 22), "1.22": (10, 22), "1.23": (11, 23), "1.24": (13, 25),
    "1.25": (13, 26), "1.26": (13, 26), "1.27": (13, 26), "1.28": (13, 26), "1.29": (13, 26),
    "1.30": (13, 26), "1.31": (13, 26),
}  # fmt: skip


class Severity(Enum):
    """How much of surgeon a finding concerns."""

    BROKEN = "broken"  # surgeon cannot be expected to work
    LIMITED = "limited"  # it works, and some models or a feature do not
    ABSENT = "absent"  # an optional feature is not installed


@dataclass(frozen=True, slots=True)
class Part:
    """Something that surgeon stands on.

    Attributes:
        name: The distribution's name, or `python`.
        version: None where it is not installed.
        needed: The versions that surgeon admits, as a specifier; the lower bound is tested.
        feature: What it is for where surgeon runs without it; empty for what is always needed.
    """

    name: str
    version: str | None
    needed: str
    feature: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, and what to do."""

    severity: Severity
    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What stands here, and what was found; worst first."""

    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether surgeon can be expected to work; features may be missing."""
        return all(finding.severity is not Severity.BROKEN for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions that fail together though their own requirements allow it."""

    one: str
    one_versions: str
    other: str
    other_versions: str
    because: str
    mend: str


PAIRS = (
    Pair(
        "onnx-graphsurgeon", "<=0.5.8", "onnx", ">=1.20",
        "onnx 1.20 took away `onnx.helper.float32_to_bfloat16`, which it imports",
        'Run `pip install --upgrade "onnx-graphsurgeon>=0.6.1"`.',
    ),
    Pair(
        "onnxruntime", "<1.19", "numpy", ">=2",
        "it was built for numpy 1 and cannot be imported",
        'Run `pip install --upgrade "onnxruntime>=1.29"`, or `pip install "numpy<2"`.',
    ),
    Pair(
        "typer", "<0.15.4", "click", ">=8.2",
        "`--help` ends in a TypeError",
        'Run `pip install --upgrade "typer>=0.16"`.',
    ),
)  # fmt: skip

FEATURES = {
    "torch": ("torch", "`surgeon.export` and `--reference torch`"),
    "openvino": ("targets", "the tests in OpenVINO"),
    "tensorrt-rtx": ("tensorrt", "the tests with TensorRT's parser and builder"),
}  # distribution: surgeon's extra, what it is for


@dataclass(frozen=True, slots=True)
class Installed:
    """What an environment holds. `examine` reads the running one; tests make others up.

    Attributes:
        python: Its version.
        versions: By canonical distribution name.
        requires: The requirements that each distribution states.
        pythons: The Python versions that surgeon admits.
    """

    python: str
    versions: Mapping[str, str]
    requires: Mapping[str, Sequence[str]]
    pythons: str


def examine(installed: Installed | None = None) -> Examination:
    """Look at what is installed, and at nothing else: no import, no network, no file written."""
    here = installed or _here()
    if SURGEON not in here.versions:
        what = f"`{SURGEON}` is not installed here, so its requirements are not known"
        lost = Finding(Severity.BROKEN, what, "Run `pip install -e .` in its folder.")
        return Examination((Part("python", here.python, ""),), (lost,))
    findings = [
        *_python(here),
        *_unmet(here),
        *_pairs(here),
        *_several_onnxruntimes(here),
        *_newer_than_onnxruntime(here),
        *_absent(here),
    ]
    order = list(Severity)
    findings.sort(key=lambda finding: order.index(finding.severity))
    return Examination(tuple(_parts(here)), tuple(findings))


def _here() -> Installed:
    versions: dict[str, str] = {}
    requires: dict[str, Sequence[str]] = {}
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"] or "")
        if name and name not in versions:  # the first on the path is what is imported
            versions[name] = distribution.version
            requires[name] = distribution.requires or []
    pythons = metadata.metadata(SURGEON)["Requires-Python"] if SURGEON in versions else ""
    return Installed(platform.python_version(), versions, requires, pythons or "")


def _requirements(here: Installed, name: str, extra: str = "") -> Iterator[Requirement]:
    """What a distribution asks for on this Python and system."""
    for text in here.requires.get(name, ()):
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _version(here: Installed, name: str) -> str | None:
    """The installed version; any of the onnxruntime distributions stands for onnxruntime."""
    names = ONNXRUNTIMES if canonicalize_name(name) == "onnxruntime" else (name,)
    found = (here.versions.get(canonicalize_name(each)) for each in names)
    return next((version for version in found if version), None)


def _meets(version: str, specifier: str | SpecifierSet) -> bool:
    return SpecifierSet(str(specifier)).contains(version, prereleases=True)


def _parts(here: Installed) -> Iterator[Part]:
    yield Part("python", here.python, here.pythons)
    needed = {r.name: str(r.specifier) for r in _requirements(here, SURGEON)}
    for name in sorted([*needed, "protobuf"]):  # protobuf: the usual bone of contention
        yield Part(name, _version(here, name), needed.get(name, ""))
    for name, (extra, purpose) in FEATURES.items():
        specifier = next(
            (str(r.specifier) for r in _requirements(here, SURGEON, extra) if r.name == name), ""
        )
        yield Part(name, _version(here, name), specifier, purpose)


def _python(here: Installed) -> Iterator[Finding]:
    if here.pythons and not _meets(here.python, here.pythons):
        yield Finding(
            Severity.BROKEN,
            f"this is Python {here.python}, and surgeon needs {here.pythons}",
            "Make an environment with such a Python and install surgeon there.",
        )


def _unmet(here: Installed) -> Iterator[Finding]:
    """Requirements that do not hold, of surgeon and of all that it stands on."""
    features = [name for name in FEATURES if name in here.versions]
    pending, seen = [SURGEON, *features], {SURGEON, *features}
    for name in pending:  # grows as it goes
        for requirement in _requirements(here, name):
            target = canonicalize_name(requirement.name)
            version = _version(here, target)
            wanted = f"`{requirement.name}{requirement.specifier}`"
            who = "surgeon" if name == SURGEON else f"`{name}` {here.versions[name]}"
            severity = Severity.LIMITED if name in features else Severity.BROKEN
            mend = f'Run `pip install "{requirement.name}{requirement.specifier}"`'
            if version is None:
                yield Finding(severity, f"{who} needs {wanted}, which is not installed", mend + ".")
            elif not _meets(version, requirement.specifier):
                what = f"{who} needs {wanted}, and {version} is installed"
                mend += ", in an environment of its own if another package forbids it."
                yield Finding(severity, what, mend)
            if target in here.versions and target not in seen:
                seen.add(target)
                pending.append(target)


def _pairs(here: Installed) -> Iterator[Finding]:
    for pair in PAIRS:
        one, other = _version(here, pair.one), _version(here, pair.other)
        if one and other and _meets(one, pair.one_versions) and _meets(other, pair.other_versions):
            what = f"`{pair.one}` {one} does not work with `{pair.other}` {other}: {pair.because}"
            yield Finding(Severity.BROKEN, what, pair.mend)


def _several_onnxruntimes(here: Installed) -> Iterator[Finding]:
    present = [name for name in ONNXRUNTIMES if name in here.versions]
    if len(present) > 1:
        listed = ", ".join(f"`{name}` {here.versions[name]}" for name in present)
        yield Finding(
            Severity.BROKEN,
            f"{listed} lie over one another: what is imported is a mixture of their files",
            f"Run `pip uninstall {' '.join(present)}`, then install the one you want.",
        )


def _newer_than_onnxruntime(here: Installed) -> Iterator[Finding]:
    onnx, runtime = _version(here, "onnx"), _version(here, "onnxruntime")
    knows = ONNX_KNOWS.get(_minor(onnx)) if onnx else None
    loads = ONNXRUNTIME_LOADS.get(_minor(runtime)) if runtime else None
    if knows and loads and (knows[0] > loads[0] or knows[1] > loads[1]):
        yield Finding(
            Severity.LIMITED,
            f"onnx {onnx} knows IR {knows[0]} and opset {knows[1]}, onnxruntime {runtime} loads up "
            f"to IR {loads[0]} and opset {loads[1]}: a model above that is mended but not checked",
            f"Export at opset {loads[1]} or below, or upgrade onnxruntime when it has caught up.",
        )


def _minor(version: str) -> str:
    return ".".join(str(number) for number in Version(version).release[:2])


def _absent(here: Installed) -> Iterator[Finding]:
    for name, (extra, purpose) in FEATURES.items():
        if name not in here.versions:
            what = f"`{name}` is not installed: {purpose} cannot be used"
            yield Finding(Severity.ABSENT, what, f'Run `pip install "{SURGEON}[{extra}]"`.')
