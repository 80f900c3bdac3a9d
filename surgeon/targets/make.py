"""Makes `table.json` from lists of operators by runtime: `python -m surgeon.targets.make [FOLDER]`.

The lists of `read.yaml`, which lies beside this file in a checkout, were read by hand. FOLDER holds
`tensorrt_ops.json` and `others_ops.json`, which were read from what each runtime's project
publishes: a document or the source, at a commit that the table names. Operators are kept by name,
with whether they are taken in part only; the words of the documents are not. A list that FOLDER
lacks stays as the table has it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx

from surgeon.document import read

TABLE = Path(__file__).with_name("table.json")
READ = TABLE.with_name("read.yaml")
_STANDARD = {s.name.lower(): s.name for s in onnx.defs.get_all_schemas() if s.domain == ""}
_MICROSOFT = "com.microsoft"
_CONTRIBUTED = {  # its operators that the lists name without the domain
    *("BiasAdd", "BiasGelu", "BiasSplitGelu", "EmbedLayerNormalization", "FastGelu", "FusedConv"),
    *("GatherBlockQuantized", "GroupQueryAttention", "Inverse", "MatMulNBits"),
    *("MultiHeadAttention", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat"),
    *("QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid"),
    *("QLinearSoftmax", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
}

# What a list is called on the command line, and in words.
_OTHERS = {
    "rknn-toolkit2-2.3.2": ("rknn-2.3.2", "RKNN-Toolkit2 2.3.2"),
    "ort-coreml-mlprogram": ("coreml-mlprogram", "onnxruntime 1.31 on Core ML, ML programs"),
    "ort-coreml-neuralnetwork": ("coreml-neuralnetwork", "onnxruntime 1.31 on Core ML, networks"),
    "ort-nnapi": ("nnapi", "onnxruntime 1.31 on Android's NNAPI"),
    "ort-webgl": ("webgl", "onnxruntime-web 1.30 on WebGL"),
    "ort-webgpu": ("webgpu", "onnxruntime-web 1.30 on WebGPU"),
    "ort-webnn": ("webnn", "onnxruntime-web 1.30 on WebNN"),
    "tract": ("tract", "tract"),
    "ncnn-onnx2ncnn(deprecated)": ("onnx2ncnn", "ncnn's old converter onnx2ncnn"),
    "onnx2tf": ("onnx2tf", "onnx2tf"),
    "onnx2torch": ("onnx2torch-1.5", "onnx2torch 1.5"),
}


def table(tensorrt: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The table as plain data; with nothing given, the lists of FOLDER are as they were."""
    kept = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    made = {} if tensorrt else {name: row for name, row in kept.items() if "tensorrt" in name}
    for version, operators in tensorrt.items():
        if version == "meta":
            continue
        meta = tensorrt["meta"][version]
        place = f"{meta.get('file', 'docs/operators.md')} of {meta['repo']}"
        entry = _entry(f"TensorRT {version}", f"{place} for {version}", operators.items())
        entry["opsets"] = _opsets(meta["header"])
        made[f"tensorrt-{version}"] = entry
    for name, (short, title) in _OTHERS.items():
        if name not in others:  # a list that was read elsewhere stays as it is
            made[short] = kept[short]
            continue
        given = others[name]
        source = given["source"]
        whose = source.get("repo") or source.get("npm") or source["wheel"]
        entry = _entry(title, f"{source['path']} of {whose}", given["ops"].items())
        entry["opsets"] = [1, given["opset"]] if "opset" in given else given.get("opsets")
        made[short] = entry
    return made | by_hand()


def by_hand() -> dict[str, Any]:
    """The rows of `read.yaml`."""
    return {
        name: {
            "title": given["title"],
            "source": given["source"],
            "opsets": given.get("opsets"),
            "taken": sorted(given["taken"]),
            "partly": sorted(given.get("partly", [])),
        }
        for name, given in read(READ).plain().items()
    }


def _entry(title: str, source: str, operators: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    taken: set[str] = set()
    partly: set[str] = set()
    for name, said in operators:
        if said["supported"] and (known := _operator(name)):
            limited = said.get("note") or said.get("restrictions")
            (partly if limited or said.get("mark") == "white_check_mark" else taken).add(known)
    return {"title": title, "source": source, "taken": sorted(taken), "partly": sorted(partly)}


def _operator(name: str) -> str | None:
    """As recipes write it; None for what no ONNX file can hold, as TensorRT's own layers."""
    domain, _, short = name.rpartition(":")
    if domain:
        return f"{domain}.{short}"
    if standard := _STANDARD.get(name.lower()):
        return standard
    return f"{_MICROSOFT}.{name}" if name in _CONTRIBUTED else None


def _opsets(header: str) -> list[int] | None:
    """The opsets that the head of TensorRT's document names: up to one, or from one to another."""
    if found := re.search(r"opset (\d+) to opset (\d+)", header, re.IGNORECASE):
        return [int(found[1]), int(found[2])]
    if found := re.search(r"up to opset (\d+)", header, re.IGNORECASE):
        return [1, int(found[1])]
    return None


if __name__ == "__main__":
    found: list[dict[str, Any]] = [{}, {}]
    for folder in map(Path, sys.argv[1:2]):
        files = (folder / f"{name}_ops.json" for name in ("tensorrt", "others"))
        found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    rows = table(*found).items()
    lines = (f" {json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in rows)
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
