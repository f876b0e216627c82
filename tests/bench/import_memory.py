#!/usr/bin/python3
"""The memory that reading a large ONNX model takes, beside the size of its weights.

usage: import_memory.py KILN [--megabytes N] [--compile] [--keep FOLDER]

Writes models of random float32 weights, half of them of convolutions and half of matrix products: one with the weights
in the file, one with them beside it (external data). Then runs `KILN tasks` of each, and with --compile also `KILN
compile`, and prints the peak of each process's resident memory (ru_maxrss, as /usr/bin/time -v has it), in megabytes and
over the size of the model. The models are left in FOLDER if one is
given.
"""
import argparse
import os
import subprocess
import tempfile

import numpy

CHANNELS = 1024
WIDE = 4096


# The functions below encode messages of onnx.proto by the numbers of their fields.
def varint(value):
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, *parts):
    """A string or a message, out of its parts."""
    parts = [part.encode() if isinstance(part, str) else part for part in parts]
    return varint(field << 3 | 2) + varint(sum(len(part) for part in parts)) + b"".join(parts)


def value_info(field, name, shape):
    dims = b"".join(block(1, number(1, extent)) for extent in shape)
    return block(field, block(1, name), block(2, block(1, number(1, 1), block(2, dims))))


def ints_attribute(name, values):
    return block(5, block(1, name), *[number(8, value) for value in values], number(20, 7))


def node(op, inputs, output, *attributes):
    return block(1, *[block(1, name) for name in inputs], block(2, output), block(4, op), *attributes)


class ModelWriter:
    """Writes weights as they come, into the file or beside it."""

    def __init__(self, path, external):
        self.path, self.rng, self.nodes, self.value = path, numpy.random.default_rng(1), [], "x"
        self.file = open(path, "wb")
        self.weights = open(path + ".weights", "wb") if external else None

    def graph(self, *parts):
        """Of a message in pieces: the field stands several times, which means the same as once."""
        self.file.write(block(7, *parts))

    def initializer(self, name, shape):
        elements = (self.rng.standard_normal(shape, dtype=numpy.float32) / 64).tobytes()
        tensor = b"".join(number(1, extent) for extent in shape) + number(2, 1) + block(8, name)
        if self.weights is None:
            self.graph(block(5, tensor, block(9, elements)))
            return
        place = {"location": os.path.basename(self.weights.name), "offset": str(self.weights.tell()),
                 "length": str(len(elements))}
        self.weights.write(elements)
        self.graph(block(5, tensor, *[block(13, block(1, k), block(2, v)) for k, v in place.items()], number(14, 1)))

    def add(self, op, name, shape=None, *attributes):
        inputs = [self.value]
        if shape is not None:
            self.initializer(name + ".w", shape)
            inputs.append(name + ".w")
        self.nodes.append(node(op, inputs, name, *attributes))
        self.value = name

    def finish(self):
        """The bytes of the model and of its weights."""
        self.graph(*self.nodes, value_info(11, "x", [1, CHANNELS, 8, 8]), value_info(12, self.value, [1, CHANNELS]))
        self.file.write(number(1, 8) + block(8, block(1, ""), number(2, 13)))
        size = self.file.tell() + (self.weights.tell() if self.weights else 0)
        self.file.close()
        if self.weights:
            self.weights.close()
        return size


def write_model(path, megabytes, external):
    """Convolutions of 3x3 one after another, then matrix products that widen and narrow in turns."""
    model = ModelWriter(path, external)
    half = megabytes * 1e6 / 2
    for i in range(max(1, round(half / (4 * 9 * CHANNELS**2)))):
        model.add("Conv", f"conv{i}", (CHANNELS, CHANNELS, 3, 3), ints_attribute("pads", [1, 1, 1, 1]))
    model.add("GlobalAveragePool", "pool")
    model.add("Flatten", "flat")
    for i in range(max(1, round(half / (2 * 4 * CHANNELS * WIDE)))):
        model.add("MatMul", f"widen{i}", (CHANNELS, WIDE))
        model.add("MatMul", f"narrow{i}", (WIDE, CHANNELS))
    return model.finish()


def peak_bytes(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss * 1024


def measure(kiln, folder, megabytes, compiles):
    print(f"{'':<36}{'model MB':>10}{'peak MB':>10}{'peak/model':>12}")
    for name in ("inline", "external"):
        model = os.path.join(folder, name + ".onnx")
        size = write_model(model, megabytes, external=name == "external")
        commands = [[kiln, "tasks", model, "--target", "cuda"]]
        if compiles:
            commands.append([kiln, "compile", model, "--target", "llvm", "-o", os.path.join(folder, "out.kiln")])
        for command in commands:
            peak = peak_bytes(command)
            what = f"{command[1]} {os.path.basename(model)}"
            print(f"{what:<36}{size / 1e6:>10.0f}{peak / 1e6:>10.0f}{peak / size:>12.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kiln")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER")
    arguments = parser.parse_args()
    kiln = os.path.abspath(arguments.kiln)
    if arguments.keep:
        measure(kiln, arguments.keep, arguments.megabytes, arguments.compile)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(kiln, folder, arguments.megabytes, arguments.compile)


if __name__ == "__main__":
    main()
