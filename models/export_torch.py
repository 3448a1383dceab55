"""Exports the models that come from PyTorch.

    python models/export_torch.py FOLDER            # torch 2.15.0, onnx 1.23, onnxscript 0.7; bert_dy18d: transformers

Weights are random, and exporters number their values as they like: an export is alike in structure, not byte for byte.
"""
import pathlib
import sys

import torch
from torch import nn


def conv(channels, filters, stride=1):
    return nn.Sequential(nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.SiLU())


class Focus(nn.Module):
    """How YOLOv5 begins: four strided slices become channels."""

    def __init__(self):
        super().__init__()
        self.conv = conv(12, 8)

    def forward(self, x):
        parts = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        return self.conv(torch.cat(parts, 1))


class SliceZoo(nn.Module):
    """Every way to slice."""

    def forward(self, x):
        c = x.shape[1]
        ends = x[:, 1:-1, :, ::3]
        row = x[:, -3:, 0].unsqueeze(2)
        flipped = x.flip(1)[:, :c // 2]
        half = x[:, c // 2:, :, -4:-1]
        written = x.clone()
        written[:, 1:3, :, ::2] = 0.5
        windows = x.unfold(3, 4, 2)[..., 1:3]
        element = x[:, :, 1:3, 2]
        part = x.tensor_split(3, dim=3)[1]
        picked = x[:, [0, 2]]
        square = torch.zeros(c, c + 2)[:, 1:c + 1] + torch.arange(c)[None].float()
        return ends, row, flipped, half, written, windows, element, part, picked, square


class ChannelShuffle(nn.Module):
    """ShuffleNet: channels are mixed between two groups, and one group is convolved."""

    def __init__(self):
        super().__init__()
        self.s = conv(3, 16, 2)
        self.b = nn.ModuleList(conv(8, 8) for _ in range(3))

    def forward(self, x):
        x = self.s(x)
        for block in self.b:
            n, c, h, w = x.shape
            x = x.reshape(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
            x = torch.cat([x[:, :c // 2], block(x[:, c // 2:])], 1)
        return x.mean((2, 3))


class LastStep(nn.Module):
    """The last step of an LSTM, and the last layer's state."""

    def __init__(self):
        super().__init__()
        self.m = nn.LSTM(8, 12, num_layers=2, batch_first=True)
        self.o = nn.Linear(12, 5)

    def forward(self, x):
        y, (h, _) = self.m(x)
        return self.o(y[:, -1]), h[-1:]


class LoopSlice(nn.Module):
    """A loop as long as an axis, and a branch on a size; scripted, so that both stay."""

    def forward(self, x):
        acc = torch.zeros_like(x[:, 0:2])
        for i in range(x.size(1) - 1):
            acc = acc + x[:, i:i + 2] * 0.5
        if x.size(0) > 2:
            acc = acc[:2]
        else:
            acc = acc * 2.0
        return acc


class Bert(nn.Module):
    """A BERT encoder of two layers."""

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel
        self.model = BertModel(BertConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                          intermediate_size=48, max_position_embeddings=64), add_pooling_layer=False)

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def main():
    folder = pathlib.Path(sys.argv[1])
    image, series = {0: "n", 2: "h", 3: "w"}, {0: "n", 1: "t"}
    scripted = [
        ("focus_ts13d", Focus(), torch.randn(2, 3, 64, 64), 13, image),
        ("slice_zoo_ts13d", SliceZoo(), torch.randn(2, 7, 4, 12), 13, {0: "n", 1: "c"}),
        ("channel_shuffle_ts13d", ChannelShuffle(), torch.randn(2, 3, 64, 64), 13, image),
        ("lstm_last_ts14d", LastStep(), torch.randn(2, 5, 8), 14, series),
        ("scripted_loop_slice_ts16d", torch.jit.script(LoopSlice()), torch.randn(2, 5, 6), 16, series),
    ]
    torch.manual_seed(0)
    for name, module, x, opset, axes in scripted:
        torch.onnx.export(module.eval(), (x,), folder / f"{name}.onnx", input_names=["x"], opset_version=opset, dynamic_axes={"x": axes},
                          dynamo=False)
    ids = torch.randint(3, 97, (2, 9))
    batch, sequence = torch.export.Dim.AUTO, torch.export.Dim.AUTO
    torch.onnx.export(Bert().eval(), (ids, torch.ones_like(ids)), folder / "bert_dy18d.onnx", opset_version=18, dynamo=True,
                      dynamic_shapes=({0: batch, 1: sequence}, {0: batch, 1: sequence}), external_data=False)


if __name__ == "__main__":
    main()
