"""Small networks in the manner of real repositories, as any PyTorch exports them.

    OLD/bin/python tests/benchmarks/networks.py FOLDER
    python tests/benchmarks/exports.py FOLDER/aten
    python tests/benchmarks/exports.py FOLDER/standard --recipe clean

The first writes each network in the modes that its PyTorch has, static and with named dynamic
axes, with inputs and PyTorch's outputs at the traced size and at two others; the others judge what
a recipe makes of them. OLD is an environment with torch 1.13 or later, numpy, onnx, and onnxscript
for the dynamo exporter; surgeon need not be there. Add a network where one of yours goes wrong.
"""

from __future__ import annotations

import argparse
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's users call it
from exporting import leaves, nonstandard
from torch import Tensor, nn

RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
OPSETS = {"fallback": (9, 11, 13, 16), "aten": (9, 11, 13, 16), "standard": (11, 13, 16, 17)}
Sizes = Mapping[str, Sequence[int]]
# By name: what makes it, its inputs, the sizes of their named dimensions, whether it is scripted.
Network = tuple[Callable[[], nn.Module], Sequence[str], Sizes, bool]
NETWORKS: dict[str, Network] = {}


def network(*inputs: str, script: bool = False, **sizes: Sequence[int]) -> Callable[[Any], Any]:
    """Register a module.

    Args:
        inputs: A kind and dimensions each: `f b 3 h` are floats, `i9 b` integers below 9 (or below
            a dimension: `ib b`), `B b t` conditions.
        script: Whether it is scripted, and not traced.
        sizes: Of each named dimension, the traced one first.
    """

    def put(module: Any) -> Any:
        NETWORKS[module.__name__] = module, inputs, sizes, script
        return module

    return put


@network("f b 8 h w", b=(2, 1, 3), h=(9, 7, 12), w=(10, 11, 6))
class MixedKernels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bank, self.route = nn.Parameter(torch.randn(4, 12 * 8 * 9) * 0.2), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.size()
        share = torch.sigmoid(self.route(F.adaptive_avg_pool2d(x, 1).flatten(1)))
        kernel = (share @ self.bank).view(b * 12, 8, 3, 3)
        y = F.conv2d(x.reshape(1, b * c, h, w), kernel, padding=1, groups=b)
        return y.view(b, 12, h, w)


@network("f b 3 h w", b=(1, 2, 3), h=(13, 9, 16), w=(11, 14, 9))
class ReflectedToAMultiple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 48, 4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        padded = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4), mode="reflect")
        return F.pixel_shuffle(self.down(padded), 4)[:, :, :h, :w]


@network("i20 b t", b=(2, 1, 3), t=(7, 5, 9))
class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(24, 8)

    def forward(self, x: Tensor) -> Any:
        mask = x.ne(1).int()
        e = self.words(x) + self.places((torch.cumsum(mask, 1).type_as(mask) * mask).long() + 1)
        hidden = (1.0 - mask[:, None, :].float()) * torch.finfo(e.dtype).min
        return ((e @ e.transpose(1, 2)) + hidden).softmax(-1), torch.cumsum(e, 1)


@network("f b t 6", "it b", b=(2, 1, 3), t=(10, 7, 13))
class MaskedRecurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 5, 2, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(10, 4, batch_first=True)

    def forward(self, x: Tensor, last: Tensor) -> Any:
        mask = (torch.arange(x.size(1))[None] <= last[:, None]).unsqueeze(-1)
        y, (h, _) = self.lstm(self.gru(x * mask)[0].masked_fill(~mask, 0.0))
        return y.gather(1, last.view(-1, 1, 1).expand(-1, 1, 4)).squeeze(1), h


@network("f n 4", "f e 3", "in e", "in e", n=(6, 5, 8), e=(9, 7, 12))
class Messages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.edge, self.cell = nn.Linear(3, 16), nn.GRUCell(4, 4)

    def forward(self, x: Tensor, edges: Tensor, source: Tensor, target: Tensor) -> Tensor:
        sent = torch.bmm(x[source].unsqueeze(1), self.edge(edges).view(-1, 4, 4)).squeeze(1)
        into = torch.zeros_like(x).scatter_add(0, target[:, None].expand(-1, 4), sent)
        count = torch.bincount(target, minlength=x.shape[0]).clamp(min=1)
        found: Tensor = self.cell(into / count.unsqueeze(1), x)
        return found


@network("f b 4 h w", "f b 4 h w", b=(2, 1, 3), h=(6, 5, 8), w=(7, 6, 5))
class Correlation(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        padded, (h, w) = F.pad(b, (1, 1, 1, 1)), a.shape[2:]
        parts = [padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)]
        return torch.stack([(a * part).mean(1) for part in parts], 1).relu()


@network("f b 27 h w", b=(2, 1, 3), h=(4, 5, 3), w=(5, 4, 6))
class Boxes(nn.Module):
    def forward(self, x: Tensor) -> Any:
        b, _, h, w = x.shape
        y = x.view(b, 3, 9, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        down, across = torch.meshgrid([torch.arange(h), torch.arange(w)])
        grid = torch.stack((across, down), 2).view(1, 1, h, w, 2).float()
        sizes = torch.tensor([[1.0, 2], [3, 4], [5, 6]]).view(1, 3, 1, 1, 2)
        y[..., 0:2] = (y[..., 0:2] * 2.0 - 0.5 + grid) * 8
        y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * sizes
        y = y.view(b, -1, 9)
        score, best = y[..., 4].topk(5, 1)
        return score, y.gather(1, best.unsqueeze(-1).expand(-1, -1, 9)), best // w


@network("f b t 16", "i20 b t", b=(2, 1, 3), t=(7, 5, 11))
class Turned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Linear(16, 32)
        self.pace = 100 ** -(torch.arange(0, 8, 2).float() / 8)

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        b, t, _ = x.shape
        angle = (place[:, :, None].float() * self.pace).repeat(1, 1, 2)[:, None]

        def turned(a: Tensor) -> Tensor:
            a = a.view(b, t, 2, 8).transpose(1, 2)
            return a * angle.cos() + torch.cat((-a[..., 4:], a[..., :4]), -1) * angle.sin()

        q, k = (turned(a) for a in self.both(x).chunk(2, -1))
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        return (q @ k.transpose(2, 3) / math.sqrt(8)).masked_fill(later, -math.inf).softmax(-1)


@network("f b t 4", b=(2, 1, 3), t=(9, 6, 12))
class Windows(nn.Module):
    def forward(self, x: Tensor) -> Any:
        x = x.contiguous()
        t = x.shape[1]
        mean = x.abs().mean(0).mean(-1)
        return x.as_strided((x.shape[0], t - 2, 3, 4), (t * 4, 4, 4, 1)), x.unfold(1, 3, 2), mean


@network("f b t 4", "B b t", b=(2, 1, 3), t=(6, 5, 8))
class Chosen(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Any:
        y = x[..., 0].clone()
        y[mask] = x[..., 1][mask]
        place = mask.nonzero()
        return y, x[mask], place, torch.where(~mask[..., None], x, x.relu()), x[place[:, 0]]


@network("i20 n", "i2 2", n=(9, 7, 12))
class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.sum = nn.EmbeddingBag(20, 4), nn.EmbeddingBag(20, 4, mode="sum")

    def forward(self, x: Tensor, ends: Tensor) -> Any:
        starts = torch.cat([torch.zeros(1, dtype=torch.long), ends.sort()[0] + 3])
        return self.mean(x, starts), self.sum(x, starts)


@network("f b t 4", "i4 1", b=(2, 1, 3), t=(6, 5, 8), script=True)
class Turns(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Any:
        y, turns = x, 0
        for i in range(int(count[0])):
            y = y * 0.5 + x * float(i)
        while turns < 5 and bool(y.abs().sum() > 1.0):
            y, turns = y * 0.4, turns + 1
        z = x.clone()
        z[0, 0] = 1.0
        return y, z, torch.tensor(turns)


class Layer(nn.Module):
    """A decoder's layer with grouped keys, which gives what it keeps of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 8), nn.Linear(16, 8)
        self.out, self.scale = nn.Linear(16, 16), nn.Parameter(torch.rand(16) + 0.5)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        b, t, _ = x.shape
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        q = self.q(y).view(b, t, 4, 4).transpose(1, 2)
        k, v = (m(y).view(b, t, 2, 4).transpose(1, 2) for m in (self.k, self.v))
        k, v = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        wide = [a[:, :, None].expand(-1, -1, 2, -1, -1).reshape(b, 4, -1, 4) for a in (k, v)]
        z = F.scaled_dot_product_attention(q, wide[0], wide[1], attn_mask=mask)
        return x + self.out(z.transpose(1, 2).reshape(b, t, 16)), k, v


@network("i20 b t", "f b 2 p 4", "f b 2 p 4", "i2 b p", b=(2, 1, 3), t=(3, 1, 4), p=(5, 2, 7))
class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.layer = nn.Embedding(20, 16), Layer()

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, held: Tensor) -> Any:
        b, t = x.shape
        whole = torch.cat((held.bool(), torch.ones(b, t, dtype=torch.bool)), 1)
        place = torch.arange(keys.shape[2] + t)
        padded = whole[torch.arange(b)[:, None, None, None], place[None, None, None, :]]
        mask = (place[None, :] <= place[-t:, None]) & padded
        return self.layer(self.rows(x), keys, values, mask)


@network("i20 b t", "i2 b t", b=(2, 1, 3), t=(7, 5, 9))
class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.both = nn.Embedding(20, 16), nn.Linear(16, 32)

    def forward(self, x: Tensor, held: Tensor) -> Tensor:
        b, t = x.shape
        q, k = (a.view(b, t, 2, 8).transpose(1, 2) for a in self.both(self.rows(x)).chunk(2, -1))
        wide = 1.0 - held[:, None, None, :].expand(b, 1, t, t).float()
        bias = wide.masked_fill(wide.bool(), -1e4)
        merged = k.reshape(b * 2, t, 8).transpose(1, 2).reshape(b, 2, 8, t)
        return (q @ merged / math.sqrt(8) + bias).softmax(-1)


@network("f b t 8", b=(2, 1, 3), t=(6, 5, 8))
class NormedRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 12, bias=False), nn.BatchNorm1d(12)
        nn.init.uniform_(self.norm.running_var, 0.5, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        y = self.norm(y.flatten(0, 1)).view_as(y)
        z = torch.zeros_like(y)
        z[:, :] = y
        return torch.minimum(z, torch.full_like(z, 0.5))[..., torch.tensor([2, 0, 5])]


def drawn(kind: str, sizes: Sizes, turn: int, seed: int) -> Tensor:
    """An input at the sizes of this turn."""
    letter, *names = kind.split()
    shape = [int(name) if name.isdigit() else sizes[name][turn] for name in names]
    source = torch.Generator().manual_seed(31 * seed + turn)
    if letter == "f":
        return torch.randn(shape, generator=source)
    if letter == "B":
        return torch.rand(shape, generator=source) > 0.4
    end = letter[1:]
    return torch.randint(
        0, int(end) if end.isdigit() else sizes[end][turn], shape, generator=source
    )


def axes_of(kinds: Sequence[str]) -> list[dict[int, str]]:
    """The named axes of each input."""
    named = [kind.split()[1:] for kind in kinds]
    return [{i: name for i, name in enumerate(n) if not name.isdigit()} for n in named]


def exported(
    module: Any, tensors: Sequence[Tensor], kinds: Sequence[str], mode: str, opset: int
) -> Any:
    """The model; without kinds it is static."""
    names, axes, given = [f"x{i}" for i in range(len(tensors))], axes_of(kinds), tuple(tensors)
    if mode.startswith("dynamo"):
        auto: Any = getattr(torch.export, "Dim", None)
        shapes = tuple(dict.fromkeys(each, auto.AUTO) for each in axes)
        made: Any = torch.onnx.export(
            module,
            given,
            dynamo=True,
            opset_version=max(opset, 18),
            input_names=names,
            dynamic_shapes=shapes if kinds else None,
            verbose=False,
            optimize=mode == "dynamo",
        )
        return made.model_proto
    file, types = io.BytesIO(), torch.onnx.OperatorExportTypes
    options: dict[str, Any] = {"dynamo": False} if RELEASE >= (2, 5) else {}
    if mode != "standard":
        kind = {"fallback": types.ONNX_ATEN_FALLBACK, "aten": types.ONNX_ATEN}[mode]
        options["operator_export_type"] = kind
    options["dynamic_axes"] = dict(zip(names, axes, strict=True)) if kinds else {}
    export: Any = torch.onnx.export
    export(module, given, file, opset_version=opset, input_names=names, **options)
    return onnx.load_from_string(file.getvalue())


def records(module: Any, inputs: Sequence[Sequence[Tensor]]) -> dict[str, Any]:
    """Inputs and PyTorch's outputs of each turn."""
    found: dict[str, Any] = {}
    for turn, tensors in enumerate(inputs):
        with torch.no_grad():
            results = list(leaves(module(*(t.clone() for t in tensors))))
        found.update({f"{turn}_x{i}": t.numpy() for i, t in enumerate(tensors)})
        found.update({f"{turn}_y{i}": t.numpy() for i, t in enumerate(results)})
    return found


def ways(turn: int) -> Iterator[tuple[str, int, bool]]:
    """Mode, opset and whether it is dynamic: every mode of this PyTorch in both ways."""
    for place, mode in enumerate(OPSETS):
        for dynamic in (False, True):
            yield mode, OPSETS[mode][(turn + place + dynamic) % 4], dynamic
    if RELEASE >= (2, 8):
        for place, mode in enumerate(("dynamo", "dynamoraw")):
            for dynamic in (False, True):
                yield mode, (18, 20, 22, 23)[(turn + 2 * place + dynamic) % 4], dynamic


def main() -> None:
    """Write the folders."""
    write(NETWORKS, __doc__ or "")


def write(networks: Mapping[str, Network], about: str) -> None:
    """Export what the command line asks for of these networks, each in every way."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="networks whose name this expression finds")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for turn, (name, (make, kinds, sizes, script)) in enumerate(networks.items()):
        if not re.search(args.only, name):
            continue
        torch.manual_seed(0)
        module: Any = make().eval().requires_grad_(False)
        module = torch.jit.script(module) if script else module
        inputs = [[drawn(k, sizes, at, i) for i, k in enumerate(kinds)] for at in range(3)]
        for mode, opset, dynamic in ways(turn):
            where = f"{name}-{mode}{opset}{'d' if dynamic else 's'}"
            try:
                model = exported(module, inputs[0], kinds if dynamic else (), mode, opset)
            except Exception as error:  # whatever an exporter raises
                print(f"{where}: not exported: {str(error).splitlines()[0][:150]}", flush=True)
                continue
            shelf = args.folder / ("aten" if nonstandard(model.graph) else "standard")
            shelf.mkdir(parents=True, exist_ok=True)
            (shelf / f"{where}.onnx").write_bytes(model.SerializeToString())
            np.savez(shelf / f"{where}.npz", **records(module, inputs if dynamic else inputs[:1]))


if __name__ == "__main__":
    main()
