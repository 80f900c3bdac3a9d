"""Writes `aten.txt`: PyTorch's operator schemas, read from an installed torch.

Run: python -m surgeon.schemas.make
Only what an exporter can leave behind is kept: no in-place or out= variants. Beside it, for what a
recipe may ask for, `names.txt`, names that `aten.txt` lacks, and `contrib.json`, the operators of
onnxruntime's own domains; what other releases had stays in both.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

# Signatures that releases before the installed one had, and operators of torchvision, which the
# exporter writes in the same way (torchvision/csrc/ops).
OTHERS = (
    "__getitem__(Tensor[] list, int idx)",
    "cholesky(Tensor self, bool upper=False)",  # gone from 2.15 on
    "qr(Tensor self, bool some=True)",
    "elu_backward(Tensor grad_output, number alpha, number scale, number input_scale, "
    "Tensor output)",
    "leaky_relu_backward(Tensor grad_output, Tensor self, number negative_slope)",
    "softplus_backward(Tensor grad_output, Tensor self, number beta, number threshold, "
    "Tensor output)",
    "_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
    "int[] dilation, bool transposed, int[] output_padding, int groups, bool benchmark, "
    "bool deterministic, bool cudnn_enabled)",
    "upsample_bilinear2d(Tensor self, int[] output_size, bool align_corners)",
    "upsample_bicubic2d(Tensor self, int[] output_size, bool align_corners)",
    "upsample_linear1d(Tensor self, int[] output_size, bool align_corners)",
    "upsample_trilinear3d(Tensor self, int[] output_size, bool align_corners)",
    "upsample_nearest1d(Tensor self, int[] output_size)",
    "upsample_nearest2d(Tensor self, int[] output_size)",
    "upsample_nearest3d(Tensor self, int[] output_size)",
    # torch 1.1 and 1.2, which knew no other corners
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners=True)",
    "grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners=True)",
    "grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
    "bool align_corners=True)",
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners=True)",
    "_scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0.0, bool need_attn_weights=False, "
    "bool is_causal=False)",
    "symeig(Tensor self, bool eigenvectors=False, bool upper=True)",
    "eig(Tensor self, bool eigenvectors=False)",
    "lstsq(Tensor self, Tensor A)",
    "frobenius_norm(Tensor self)",
    "linalg_matrix_rank(Tensor self, float? tol=None, bool hermitian=False)",
    "linalg_svd(Tensor self, bool full_matrices=True, bool compute_uv=True)",
    "matrix_rank(Tensor self, bool symmetric=False)",
    "matrix_rank.tol(Tensor self, float tol, bool symmetric=False)",
    "nansum(Tensor self, *, int? dtype=None)",
    "max_values(Tensor self, int[] dim, bool keepdim=False)",
    "min_values(Tensor self, int[] dim, bool keepdim=False)",
    "fft(Tensor self, int signal_ndim, bool normalized=False)",
    "floordiv.Tensor(Tensor a, Tensor b)",  # torch 1.4's scripts
    "ifft(Tensor self, int signal_ndim, bool normalized=False)",
    "irfft(Tensor self, int signal_ndim, bool normalized=False, bool onesided=True, "
    "int[] signal_sizes=[])",
    "Placeholder(Tensor self)",  # what exporters leave of a write whose operands they lost
    "fill_diagonal(Tensor self, number fill_value, bool wrap=False)",  # in place alone in PyTorch
    "einsum(str equation, Tensor[] tensors)",
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)",
    "nms(Tensor dets, Tensor scores, float iou_threshold)",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width, int sampling_ratio, bool aligned=False)",  # not given before 0.6
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width, int sampling_ratio)",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width)",
    # before 0.9 there was no mask
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor bias, "
    "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
    "int groups, int offset_groups)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, "
    "int groups, int offset_groups, bool use_mask)",
    "_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs)",  # torchaudio's
    "rfft(Tensor self, int signal_ndim, bool normalized=False, bool onesided=True)",
    "solve(Tensor self, Tensor A)",
    "thnn_col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, "
    "int[] padding, int[] stride)",
    "thnn_im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride)",
    # quantized_decomposed's, of scales that are numbers or tensors, and torchao's
    *(
        f"{way}quantize_per_tensor.tensor(Tensor self, Tensor scale, Tensor zero_point, "
        f"int quant_min, int quant_max, int dtype{', *, int? out_dtype=None' if way else ''})"
        for way in ("", "de")
    ),
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
    "int quant_min, int quant_max, int dtype)",
    "dequantize_per_channel(Tensor self, Tensor scales, Tensor? zero_points, int axis, "
    "int quant_min, int quant_max, int dtype, *, int? out_dtype=None)",
    "fake_quant_per_channel(Tensor self, Tensor scale, Tensor zero_point, int axis, "
    "int quant_min, int quant_max)",
    "quantize_per_token(Tensor self, Tensor scales, Tensor zero_points, int quant_min, "
    "int quant_max, int dtype)",
    "dequantize_per_token(Tensor self, Tensor scales, Tensor zero_points, int quant_min, "
    "int quant_max, int dtype, int output_dtype)",
    "quantize_per_channel_group(Tensor self, Tensor scales, Tensor zero_points, int quant_min, "
    "int quant_max, int dtype, int group_size)",
    "dequantize_per_channel_group(Tensor self, Tensor scales, Tensor? zero_points, "
    "int quant_min, int quant_max, int dtype, int group_size, int output_dtype)",
    "quantize_affine(Tensor self, int[] block_size, Tensor scale, Tensor? zero_point, "
    "int output_dtype, number? quant_min=None, number? quant_max=None)",
    "dequantize_affine(Tensor self, int[] block_size, Tensor scale, Tensor? zero_point, "
    "int input_dtype, number? quant_min=None, number? quant_max=None, int output_dtype=6)",
    "choose_qparams(Tensor self, int quant_min, int quant_max, float eps, int dtype)",
    "choose_qparams_symmetric(Tensor self, int quant_min, int quant_max, float eps, int dtype)",
    "choose_qparams_per_token(Tensor self, int dtype)",
    "choose_qparams_per_token_asymmetric(Tensor self, int dtype)",
    "_choose_qparams_per_token_asymmetric_impl(Tensor self, int dtype)",
    # gradients of resampling by factors, before 2.0
    *(
        f"{name}_backward.vec(Tensor grad_output, int[]? output_size, int[] input_size, "
        "bool align_corners, float[]? scale_factors)"
        for name in (
            *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"),
            *("upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
        )
    ),
    *(
        f"{stem}{n}d_backward.vec(Tensor grad_output, int[]? output_size, int[] input_size, "
        "float[]? scale_factors)"
        for stem in ("upsample_nearest", "_upsample_nearest_exact")
        for n in (1, 2, 3)
    ),
)


def lines() -> list[str]:
    """One schema a line: `name.overload(type name=default, ..., *, type name) -> n`."""
    import torch

    found: set[str] = set(OTHERS)
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        skip = (
            not schema.name.startswith("aten::")
            or any(argument.is_out for argument in schema.arguments)
            or (name.endswith("_") and not name.startswith("__"))
        )
        if not skip:
            overload = f".{schema.overload_name}" if schema.overload_name else ""
            found.add(f"{name}{overload}({', '.join(_parameters(schema.arguments))})")
    return sorted(found)


def _parameters(arguments: Any) -> list[str]:
    out: list[str] = []
    keyword = False
    for argument in arguments:
        if argument.kwarg_only and not keyword:
            out.append("*")
            keyword = True
        kind = str(argument.type)
        optional = ""
        if kind.startswith("Optional["):
            kind, optional = kind[9:-1], "?"
        if kind.startswith("List["):
            inner = kind[5:-1]
            inner = f"{inner[9:-1]}?" if inner.startswith("Optional[") else inner
            kind = f"{inner}[]"
        default = f"={argument.default_value!r}" if argument.has_default_value() else ""
        out.append(f"{kind}{optional} {argument.name}{default}")
    return out


def names(schemas: list[str], before: list[str]) -> list[str]:
    """One name a line, `aten::name.overload` or `prim::name`: those that have no schema here."""
    import torch

    found = set(before)
    for schema in torch._C._jit_get_all_schemas():
        overload = schema.overload_name
        if schema.name.startswith("aten::"):
            found.add(f"{schema.name}.{overload}" if overload else schema.name)
        elif schema.name.startswith("prim::"):
            found.add(schema.name)
    header = Path(torch.__file__).parent / "include/ATen/core/interned_strings.h"
    symbols = re.findall(r"_\(prim, (\w+)\)", header.read_text(encoding="utf-8"))
    found.update(f"prim::{symbol}" for symbol in symbols)
    there = {f"aten::{line.partition('(')[0]}" for line in schemas}
    stems = {name.partition(".")[0] for name in there}
    return sorted(name for name in found - there if not _is_written_into(name, stems))


def _is_written_into(name: str, stems: set[str]) -> bool:
    """Whether it is a form in place, or with `out`, of what has a schema: that is known of it."""
    stem, _, overload = name.partition(".")
    in_place = stem.endswith("_") and not stem.endswith("__") and stem.removesuffix("_") in stems
    return in_place or (stem in stems and "out" in overload.split("_"))


def contrib(before: dict[str, Any]) -> dict[str, Any]:
    """By domain and operator the attributes, with their kinds."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = before
    for schema in state.get_all_operator_schema():
        if not schema.domain.startswith(("com.microsoft", "com.ms.")):
            continue
        kinds = {
            name: str(each.type).rpartition(".")[2].lower()
            for name, each in schema.attributes.items()
        }
        domain = found.setdefault(schema.domain, {})
        domain[schema.name] = dict(sorted({**domain.get(schema.name, {}), **kinds}.items()))
    return {domain: dict(sorted(table.items())) for domain, table in sorted(found.items())}


def written(table: dict[str, Any]) -> str:
    """JSON with a line for each operator."""
    domains = (
        f"{json.dumps(domain)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(kinds)}" for name, kinds in found.items())
        + "\n}"
        for domain, found in table.items()
    )
    return "{\n" + ",\n".join(domains) + "\n}\n"


if __name__ == "__main__":
    folder = Path(__file__).parent
    schemas = lines()
    (folder / "aten.txt").write_text("\n".join(schemas) + "\n", encoding="utf-8")
    named = folder / "names.txt"
    old = named.read_text(encoding="utf-8").splitlines() if named.exists() else []
    named.write_text("\n".join(names(schemas, old)) + "\n", encoding="utf-8")
    target = folder / "contrib.json"
    table = contrib(json.loads(target.read_text("utf-8")) if target.exists() else {})
    target.write_text(written(table), encoding="utf-8")
    for path in (folder / "aten.txt", named, target):
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")
