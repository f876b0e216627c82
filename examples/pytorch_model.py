#!/usr/bin/env python3
"""A PyTorch model tuned and compiled by Kiln, and called from Python beside PyTorch itself.

usage: pytorch_model.py [MODEL] [--target llvm|cuda] [--trials N] [--minutes M] [--shape N,N,...] [--folder DIR] [--kiln PROGRAM]

MODEL is `small-cnn` (below; what is taken if there is none), a model of torchvision (resnet18, ...), or FILE.py:NAME,
where NAME is a module or something that makes one when it is called. FOLDER keeps the ONNX file, the records, and the
compiled network; a second run adds to its records, with --trials 0 it only uses them. Needs torch, onnx, onnxscript and numpy.
"""
import argparse
import importlib.util
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time

import kiln
import torch


class SmallCnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.classes = nn.Linear(64, 10)

    def forward(self, x):
        return self.classes(self.features(x).mean((2, 3)))


def make_model(name):
    """The model, and the shape of its input if it is known."""
    if name == "small-cnn":
        return SmallCnn(), "1,3,64,64"
    if ":" in name:
        path, what = name.rsplit(":", 1)
        spec = importlib.util.spec_from_file_location("model", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = getattr(module, what)
        return (made if isinstance(made, torch.nn.Module) else made()), None
    import torchvision
    return torchvision.models.get_model(name, weights=None), "1,3,224,224"


def find_kiln(given):
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bazel-bin", "client", "cli", "kiln")
    program = shutil.which(given or "kiln") or given or os.path.normpath(built)
    if not os.path.exists(program):
        sys.exit(f"there is no {program}: build it (bazel build //client/cli:kiln), or say --kiln PROGRAM")
    return program


def run(program, *words):
    print("$ kiln", shlex.join(words), flush=True)
    if subprocess.run([program, *words], check=False).returncode != 0:
        sys.exit(f"kiln {words[0]} failed: see above")


def export(model, x, path):
    torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"], dynamo=True, verbose=False)
    print(f"{path}: {sum(p.numel() for p in model.parameters()):,} parameters, input {list(x.shape)}")


def medians_s(calls, device, rounds=30):
    """Of one call of each; in turns, as what else the machine does changes with time."""
    seconds = [[] for _ in calls]
    for _ in range(rounds):
        for call, readings in zip(calls, seconds):
            call()  # threads and caches are this one's again
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            if device == "cuda":
                torch.cuda.synchronize()
            readings.append(time.perf_counter() - start)
    return [statistics.median(readings) for readings in seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="small-cnn")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--shape")
    parser.add_argument("--folder", default="tuned")
    parser.add_argument("--kiln")
    arguments = parser.parse_args()
    program = find_kiln(arguments.kiln)
    target, device = arguments.target, "cuda" if arguments.target.startswith("cuda") else "cpu"
    if target == "cuda":
        target += " -arch=sm_{}{}".format(*torch.cuda.get_device_capability())
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # float32, as Kiln computes

    model, shape = make_model(arguments.model)
    model.eval()
    shape = arguments.shape or shape
    if shape is None:
        sys.exit(f"the shape of the input of {arguments.model} is not known: say --shape N,N,...")
    x = torch.rand([int(extent) for extent in shape.split(",")])

    os.makedirs(arguments.folder, exist_ok=True)
    onnx, db, network = [os.path.join(arguments.folder, name) for name in ("model.onnx", "kiln.db", "model.kiln")]
    export(model, x, onnx)
    minutes = ["--minutes", str(arguments.minutes)] if arguments.minutes else []
    if arguments.trials > 0:
        run(program, "tune", onnx, "--target", target, "--trials", str(arguments.trials), *minutes, "--db", db)
    run(program, "compile", onnx, "--target", target, "--db", db, "-o", network)

    net = kiln.load(network)
    print(net)
    model, x = model.to(device), x.to(device)
    with torch.inference_mode():
        want, got = model(x), net(x)
        error = ((got - want).abs().max() / want.abs().max()).item()
        print(f"largest difference to PyTorch: {error:.1e} of the largest value")
        if not error < 1e-4:
            sys.exit("that is too much for float32")
        torch_s, kiln_s = medians_s([lambda: model(x), lambda: net(x, out=got)], device)
    print(f"PyTorch {torch_s * 1e6:.1f} us, Kiln {kiln_s * 1e6:.1f} us: {torch_s / kiln_s:.2f} times as fast")


if __name__ == "__main__":
    main()
