"""Training of BlendCNN from scratch, or from the embeddings of a BERT.

What helps a small network to compare two sentences with 3,668 pairs to learn from:
- pairs made up of the training sentences come first and keep coming: a sentence and itself with words missing or moved, and
  sentences that have half of their words or none in common;
- the two sentences of a pair change places at random: being a paraphrase is mutual;
- the means over time differ little between samples, so they are normalized while training. The normalization is linear, and
  becomes part of the next layer's weights in the end.
"""

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from data import halves, join
from metrics import evaluate
from models import BlendCNN


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file, in float32."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    dtypes = {"F16": np.float16, "F32": np.float32}
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if entry.get("dtype") in dtypes:
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            array = np.frombuffer(content[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(array.astype(np.float32))
    return tensors


def load_embeddings(model: BlendCNN, path: Path) -> None:
    """From a checkpoint of BERT in the names of Hugging Face: .safetensors, or .bin and .pt of PyTorch."""
    found = (
        read_safetensors(path)
        if path.suffix == ".safetensors"
        else torch.load(path, map_location="cpu", weights_only=True)
    )
    found = {name.removeprefix("bert."): tensor for name, tensor in found.items()}
    ours = model.embeddings
    for tensor, name in (
        (ours.token.weight, "word_embeddings.weight"),
        (ours.position.weight, "position_embeddings.weight"),
        (ours.segment.weight, "token_type_embeddings.weight"),
        (ours.norm.weight, "LayerNorm.weight"),
        (ours.norm.bias, "LayerNorm.bias"),
    ):
        # Checkpoints that were converted from TensorFlow's have its names.
        older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        theirs = found.get(f"embeddings.{name}", found.get(f"embeddings.{older}"))
        if theirs is None or theirs.shape != tensor.shape:
            shape = "nothing" if theirs is None else list(theirs.shape)
            raise SystemExit(
                f"{path}: embeddings.{name}: found {shape}, the configuration has {list(tensor.shape)}"
            )
        with torch.no_grad():
            tensor.copy_(theirs)


class Normalized(nn.Module):
    """A linear layer behind a normalization of what it reads."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(linear.in_features), linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))

    def folded(self) -> nn.Linear:
        """The same function, as it is after training, as one linear layer."""
        linear = copy.deepcopy(self.linear)
        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        with torch.no_grad():
            linear.bias += linear.weight @ (self.norm.bias - self.norm.running_mean * scale)
            linear.weight *= scale
        return linear


class AsProduct(nn.Module):
    """A convolution over time as one product and a sum of shifted parts: PyTorch trains that faster on CPUs."""

    def __init__(self, convolution: nn.Conv1d):
        super().__init__()
        self.convolution = convolution

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.convolution.weight
        outputs, inputs, taps = weight.shape
        border = self.convolution.padding[0]
        products = x.transpose(1, 2) @ weight.permute(1, 2, 0).reshape(inputs, taps * outputs)
        products = nn.functional.pad(products, (0, 0, border, border)).unflatten(2, (taps, outputs))
        length = products.shape[1] - taps + 1
        result = sum(products[:, tap : tap + length, tap] for tap in range(taps))
        return (result + self.convolution.bias).transpose(1, 2)


def initialize(model: BlendCNN) -> None:
    """Eight layers on top of each other: with a smaller start nothing would arrive at the last ones."""
    for layer in [*model.convolutions, model.blend]:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    for table in (model.embeddings.token, model.embeddings.position, model.embeddings.segment):
        nn.init.normal_(table.weight, std=0.05)


def made_up(sentence: list[int], other: list[int], random: np.random.Generator) -> tuple[list[int], int]:
    """What goes with a sentence in a pair that nobody has judged, and the judgement."""
    if random.random() < 0.5:
        kept = [token for token in sentence if random.random() > 0.1]
        if len(kept) > 6 and random.random() < 0.5:
            cut = int(random.integers(2, len(kept) - 2))
            kept = kept[cut:] + kept[:cut]
        return kept, 1
    if random.random() < 0.5:
        return sentence[: len(sentence) // 2] + other[len(other) // 2 :], 0
    return other, 0


def batches(
    pairs: list[tuple[list[int], list[int], int]],
    share: float,
    config: dict,
    length: int,
    random: np.random.Generator,
) -> Iterator[tuple[torch.Tensor, ...]]:
    """One epoch. `share` of the pairs are made up."""
    order = random.permutation(len(pairs))
    size = config["batch_size"]
    for start in range(0, len(order) - size + 1, size):
        rows = []
        for index in order[start : start + size]:
            first, second, label = pairs[index]
            if random.random() < share:
                second, label = made_up(first, pairs[random.integers(len(pairs))][1], random)
            if random.random() < 0.5:
                first, second = second, first
            rows.append((*join(first, second, length), torch.tensor(label)))
        yield tuple(torch.stack(column) for column in zip(*rows, strict=True))


def train(model: BlendCNN, train_set, dev_set, config: dict, length: int) -> BlendCNN:
    """Returns the mean of the models after each of the last epochs: 408 pairs are too few to tell which is the best."""
    torch.manual_seed(config["seed"])
    random = np.random.default_rng(config["seed"])
    pairs = [(*halves(tokens, segments), int(label)) for tokens, segments, label in train_set]
    model.blend = Normalized(model.blend)
    model.convolutions = nn.ModuleList(map(AsProduct, model.convolutions))
    table = model.embeddings.token.weight
    others = [parameter for parameter in model.parameters() if parameter is not table]
    # A batch touches a small part of the table: sparse gradients leave the rest alone.
    optimizers = [
        torch.optim.SparseAdam([table], lr=config["embedding_rate"]),
        torch.optim.AdamW(others, lr=config["rate"], weight_decay=config["weight_decay"]),
    ]
    steps = config["epochs"] * (len(pairs) // config["batch_size"])
    warm = max(1.0, config["warmup"] * steps)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1, step / warm) * max(0, 1 - step / steps)
        )
        for optimizer in optimizers
    ]
    mean = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    start = time.time()
    for epoch in range(config["epochs"]):
        model.train()
        losses = []
        share = 1.0 if epoch < config["made_up_epochs"] else config["made_up_share"]
        for tokens, segments, labels in batches(pairs, share, config, length, random):
            with torch.autocast("cpu", torch.bfloat16, enabled=config["bfloat16"]):
                scores = model(tokens, segments)
            loss = nn.functional.cross_entropy(scores.float(), labels)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(others, 1.0)
            for step in (*optimizers, *schedules):
                step.step()
            losses.append(loss.item())
        if epoch >= config["epochs"] - config["averaged_epochs"]:
            mean.update_parameters(model)
        accuracy, f1, _ = evaluate(model, dev_set)
        passed = f"{time.time() - start:.0f} s"
        print(
            f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, dev accuracy {accuracy:.3f}, F1 {f1:.3f}, {passed}",
            flush=True,
        )
    model.load_state_dict(mean.module.state_dict())
    print(
        "mean of the last {}: dev accuracy {:.3f}, F1 {:.3f}".format(
            config["averaged_epochs"], *evaluate(model, dev_set)
        )
    )
    model.blend = model.blend.folded()
    model.convolutions = nn.ModuleList(layer.convolution for layer in model.convolutions)
    return model.eval()
