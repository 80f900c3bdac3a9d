"""A small dynamic-convolution network in the manner of DyMN, exported with the ATen fallback.

Written from the published description (F. Schmid, K. Koutini, G. Widmer, "Dynamic Convolutional
Neural Networks as Efficient Pre-trained Audio Models", 2023, and the papers it builds on: dynamic
convolution, dynamic ReLU, coordinate attention). Weights are random, and drawn so that every part
matters: attention far from uniform, BatchNormalization far from the identity.

Run: python samples/dymn_tiny/make.py [FOLDER]
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from surgeon.export import export

KERNELS = 4
MEL_BINS = 32
CLASSES = 10


class ContextGenerator(nn.Module):
    """One pooled context vector, and an attention map along each axis."""

    def __init__(self, channels: int, width: int, attended: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.joint = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.Hardswish()
        )
        self.to_frequency = nn.Conv2d(width, attended, 1)
        self.to_time = nn.Conv2d(width, attended, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        by_frequency = functional.adaptive_avg_pool2d(x, (None, 1))  # [b, c, f, 1]
        by_time = functional.adaptive_avg_pool2d(x, (1, None)).permute(0, 1, 3, 2)  # [b, c, t, 1]
        f, t = by_frequency.size(2), by_time.size(2)
        joint = self.joint(torch.cat([by_frequency, by_time], dim=2))
        along_f, along_t = torch.split(joint, [f, t], dim=2)
        along_t = along_t.permute(0, 1, 3, 2)
        context = joint.mean(dim=2, keepdim=True)  # [b, width, 1, 1]
        if self.stride > 1:
            along_f = functional.avg_pool2d(along_f, (3, 1), (self.stride, 1), (1, 0))
            along_t = functional.avg_pool2d(along_t, (1, 3), (1, self.stride), (0, 1))
        return context, self.to_frequency(along_f).sigmoid(), self.to_time(along_t).sigmoid()


class DynamicConv(nn.Module):
    """A convolution whose kernel is a mixture of KERNELS kernels, mixed anew for each sample."""

    def __init__(
        self,
        channels: int,
        out: int,
        kernel: int,
        width: int,
        *,
        stride: int = 1,
        groups: int = 1,
        attention_groups: int = 1,
        bias: bool = False,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.channels, self.out, self.kernel = channels, out, kernel
        self.stride, self.groups = stride, groups
        self.attention_groups, self.temperature = attention_groups, temperature
        numbers = out // attention_groups * (channels // groups) * kernel * kernel
        self.attention = nn.Linear(width, KERNELS * attention_groups)
        self.bank = nn.Parameter(torch.empty(1, attention_groups, KERNELS, numbers))
        self.biases = (
            nn.Parameter(torch.empty(1, attention_groups, KERNELS, out // attention_groups))
            if bias
            else None
        )

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        b, _, h, w = x.size()
        logits = self.attention(context.reshape(b, -1)).view(b, self.attention_groups, 1, -1)
        mixture = torch.softmax(logits / self.temperature, dim=-1)
        weight = (mixture @ self.bank).transpose(1, 2)
        channels = self.channels // self.groups
        weight = weight.reshape(b, self.out, channels, self.kernel, self.kernel)
        weight = weight.view(b * self.out, channels, self.kernel, self.kernel)
        bias = None
        if self.biases is not None:
            bias = (mixture @ self.biases).reshape(b * self.out)
        # every sample has its own kernels: the samples become groups of one convolution
        y = functional.conv2d(
            x.reshape(1, -1, h, w),
            weight,
            bias,
            stride=self.stride,
            padding=self.kernel // 2,
            groups=self.groups * b,
        )
        return y.view(b, self.out, y.size(-2), y.size(-1))


class DynamicReLU(nn.Module):
    """The larger of two lines, whose slopes and offsets come from the context."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.coefficients = nn.Linear(width, 4 * channels)
        self.register_buffer("reach", torch.tensor([1.0, 1.0, 0.5, 0.5]))
        self.register_buffer("start", torch.tensor([1.0, 0.0, 0.0, 0.0]))

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        theta = 2 * self.coefficients(context.reshape(x.size(0), -1)).sigmoid() - 1
        theta = theta.view(-1, self.channels, 1, 1, 4) * self.reach + self.start
        lines = x.unsqueeze(-1) * theta[..., :2] + theta[..., 2:]
        return torch.max(lines[..., 0], lines[..., 1])


class Block(nn.Module):
    """Inverted residual: expand, convolve each channel, attend, project."""

    def __init__(
        self,
        channels: int,
        expanded: int,
        out: int,
        kernel: int,
        stride: int,
        *,
        width: int,
        attention_groups: int = 1,
        bias: bool = False,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        shared = {"attention_groups": attention_groups, "bias": bias, "temperature": temperature}
        self.context = ContextGenerator(channels, width, expanded, stride)
        self.expand = (
            DynamicConv(channels, expanded, 1, width, **shared) if expanded != channels else None
        )
        self.expand_norm = nn.BatchNorm2d(expanded) if expanded != channels else None
        self.depthwise = DynamicConv(
            expanded, expanded, kernel, width, stride=stride, groups=expanded, **shared
        )
        self.depthwise_norm = nn.BatchNorm2d(expanded)
        self.activation = DynamicReLU(expanded, width)
        self.project = DynamicConv(expanded, out, 1, width, **shared)
        self.project_norm = nn.BatchNorm2d(out)
        self.residual = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        context, along_f, along_t = self.context(x)
        y = x
        if self.expand is not None:
            y = functional.hardswish(self.expand_norm(self.expand(y, context)))
        y = self.depthwise_norm(self.depthwise(y, context))
        y = self.activation(y, context) * along_f * along_t
        y = self.project_norm(self.project(y, context))
        return x + y if self.residual else y


class TinyDyMN(nn.Module):
    """Mel spectrogram [b, 1, MEL_BINS, t] to (logits [b, CLASSES], embedding [b, 16])."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish()
        )
        self.blocks = nn.Sequential(
            Block(8, 8, 8, 3, 1, width=8),  # no expansion, as DyMN's first block
            Block(8, 20, 12, 3, 2, width=8, bias=True, temperature=2.0),
            Block(12, 28, 12, 5, 1, width=8, attention_groups=2),
        )
        self.head = nn.Sequential(
            nn.Conv2d(12, 16, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()
        )
        self.classify = nn.Linear(16, CLASSES)

    def forward(self, mel: Tensor) -> tuple[Tensor, Tensor]:
        features = self.head(self.blocks(self.stem(mel)))
        embedding = features.mean(dim=(2, 3))
        return self.classify(embedding), embedding


def make_it_matter(module: nn.Module, generator: torch.Generator) -> None:
    """Draw weights with which no part of the network could be left out unseen."""

    def normal(tensor: Tensor, scale: float) -> None:
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale)

    def uniform(tensor: Tensor, low: float, high: float) -> None:
        tensor.copy_(low + (high - low) * torch.rand(tensor.shape, generator=generator))

    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                uniform(part.weight, 0.5, 1.5)
                normal(part.bias, 0.3)
                normal(part.running_mean, 0.3)
                uniform(part.running_var, 0.4, 2.0)
            elif isinstance(part, nn.Conv2d):
                normal(part.weight, (2.0 / part.weight[0].numel()) ** 0.5)
                if part.bias is not None:
                    normal(part.bias, 0.5)
            elif isinstance(part, nn.Linear):
                normal(part.weight, 2.0 / part.in_features**0.5)
                normal(part.bias, 0.5)
            elif isinstance(part, DynamicConv):
                fan_in = part.channels // part.groups * part.kernel**2
                normal(part.bank, (2.0 / fan_in) ** 0.5)
                if part.biases is not None:
                    normal(part.biases, 0.5)
        for part in module.modules():  # after the Linear layers in general, since these are such
            if isinstance(part, DynamicConv):
                normal(part.attention.weight, 3.0 * part.temperature / 8**0.5)
                normal(part.attention.bias, 1.0)


def make(folder: Path) -> list[Path]:
    """Write the sample with dynamic batch and time, and the one of fixed shape."""
    generator = torch.Generator().manual_seed(20240229)
    module = TinyDyMN()
    make_it_matter(module, generator)

    def mel(batch: int, time: int) -> Tensor:
        """Noise, with a level and a colour of each sample's own: contexts that differ."""
        shapes = [(batch, 1, MEL_BINS, time), (batch, 1, MEL_BINS, 1), (batch, 1, 1, 1)]
        noise, colour, level = (torch.randn(shape, generator=generator) for shape in shapes)
        return noise + colour + 2 * level

    names = {"input_names": ["mel"], "output_names": ["logits", "embedding"], "opset_version": 17}
    dynamic = export(
        module,
        mel(2, 40),
        folder / "dymn_tiny.onnx",
        dynamic_axes={
            "mel": {0: "batch", 3: "time"},
            "logits": {0: "batch"},
            "embedding": {0: "batch"},
        },
        extra_inputs=[mel(1, 33), mel(3, 51), mel(4, 27)],
        **names,
    )
    static = export(
        module, mel(2, 40), folder / "dymn_tiny_static.onnx", extra_inputs=[mel(2, 40)], **names
    )
    return [dynamic, static]


if __name__ == "__main__":
    for path in make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent):
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")
