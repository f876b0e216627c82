#!/usr/bin/python3
"""Operators that move data, reduce, pool and normalise, on a GPU: tuned, beside PyTorch and what copying allows.

usage: memory_bound.py KILN FOLDER [--trials N] [--seed N] [--only "WORD;..."] [--no-torch] [--list]

Each workload is tuned by `KILN tune ... --target cuda` with a database of its own in FOLDER; PyTorch computes the same in
the same run: the median of 30 replays of a CUDA graph of 20 calls, eager, and compiled (torch.compile) where --compile is
given. The limit is the bytes that have to be moved, each input and each output once, over the bandwidth of a large copy,
measured at the start. Both are timed back to back on the same buffers: what fits the L2 cache stays there, so a working set
of less than it can be faster than the limit. Writes FOLDER/memory_bound.json and .md.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

# The words of `kiln tune` and PyTorch's expression. In it x, y, ... are the inputs in the order of
# the text form.
WORKLOADS = [
    ("sum 4096,4096,axis=0", "x.sum(0)"),
    ("sum 4096,4096,axis=1", "x.sum(1)"),
    ("sum 4099,2053,axis=0", "x.sum(0)"),
    ("sum 32,64,112,112,axis=0,axis=2,axis=3", "x.sum((0, 2, 3))"),
    ("sum 16777216", "x.sum()"),
    ("max 64,512,512,axis=1", "x.amax(1)"),
    ("argmax 4096,4096,axis=1", "x.argmax(1).int()"),
    ("transpose 2048,4096", "x.t().contiguous()"),
    ("transpose 2053,4099", "x.t().contiguous()"),
    ("transpose 32,64,112,112,axis=0,axis=2,axis=3,axis=1", "x.permute(0, 2, 3, 1).contiguous()"),
    ("transpose 32,512,16,64,axis=0,axis=2,axis=1,axis=3", "x.permute(0, 2, 1, 3).contiguous()"),
    ("transpose 4096,4096 --dtype float16", "x.t().contiguous()"),
    ("softmax 4096,4096", "x.softmax(-1)"),
    ("softmax 16384,1000", "x.softmax(-1)"),
    ("softmax 512,1000", "x.softmax(-1)"),
    ("layer_norm 16384,1024", "F.layer_norm(x, (1024,), y, z)"),
    ("rms_norm 16384,1024", "F.rms_norm(x, (1024,), y)"),
    ("batch_norm 32,64,112,112", "F.batch_norm(x, y, z, v, w)"),
    ("relu 4096,4096", "F.relu(x)"),
    ("relu 4099,4097", "F.relu(x)"),
    ("gelu 8192,4096 --dtype float16", "F.gelu(x)"),
    ("add 4096,4096,broadcast=0", "x + y"),
    ("bias_add 32,64,112,112,axis=1", "x + y"),
    ("max_pool2d_nchw 32,112,112,64,3,3,2,1", "F.max_pool2d(x, 3, 2, 1)"),
    ("max_pool2d_nhwc 32,112,112,64,3,3,2,1", "F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1)"),
    ("avg_pool2d_nchw 32,112,112,64,3,3,1,1,1", "F.avg_pool2d(x, 3, 1, 1)"),
    ("global_avg_pool2d_nchw 128,28,28,256", "x.mean((2, 3), keepdim=True)"),
    ("global_avg_pool2d_nhwc 128,28,28,256", "x.mean((1, 2), keepdim=True)"),
    ("concat 4096,2048,axis=1,with=1024,with=1024", "torch.cat((x, y, z), 1)"),
    ("slice 4096,8192,begin=0,begin=1024,end=4096,end=5120", "x[:, 1024:5120].contiguous()"),
    ("pad 32,64,111,111", "F.pad(x, (1, 1, 1, 1))"),
    ("gather 50000,1024,indices=16384", "y.index_select(0, x)"),
    ("resize_bilinear_nchw 8,64,64,64,128,128", "F.interpolate(x, (128, 128), mode='bilinear')"),
    ("resize_nearest_nhwc 8,64,64,64,128,128",
     "F.interpolate(x.permute(0, 3, 1, 2), (128, 128), mode='nearest')"),
    ("sum 64,64,axis=0", "x.sum(0)"),
    ("relu 1000", "F.relu(x)"),
    ("conv2d_transpose_nhwc 1,16,16,128,256,4,4,2,1",
     # NCHW is faster for PyTorch.
     "F.conv_transpose2d(x.view(1, 256, 16, 16), y.view(256, 128, 4, 4), stride=2, padding=1)"),
]


def words_of(row):
    """The words of `kiln tune`, and the dtype."""
    words = row.split()
    dtype = words[words.index("--dtype") + 1] if "--dtype" in words else "float32"
    return [words[0], "--args", words[1], *words[2:]], dtype


def tensors_of(kiln, row):
    """Types and shapes of the inputs, and of the output, as the text form says."""
    command, _ = words_of(row)
    text = subprocess.run([kiln, "show", *command, "--as", "dag"], capture_output=True, text=True, check=True).stdout
    inputs, output = [], None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("input "):
            shape = line[line.index("[") + 1:line.index("]")]
            dtype = line[line.index(":") + 1:line.index("[")].strip()
            inputs.append((dtype, [int(n) for n in shape.split(",")] if shape else []))
        elif "[" in line and "=" in line and not line.startswith("#"):
            axes = line[line.index("[") + 1:line.index("]")]
            output = [int(axis.split(":")[1]) for axis in axes.split(",")] if axes.strip() else []
    return inputs, output


def bytes_of(row, inputs, output, dtype):
    size = {"float32": 4, "float16": 2, "int32": 4, "bfloat16": 2}
    total = sum(size[kind] * math.prod(shape) for kind, shape in inputs) + size[dtype] * math.prod(output)
    # Only the chosen part of the input counts.
    if row.startswith(("gather", "slice")):
        total -= size[dtype] * (math.prod(inputs[-1][1]) - math.prod(output))
    return total


def command_of(kiln, words, database, arguments):
    return [kiln, "tune", *words, "--target", "cuda", "--db", database, "--trials", str(arguments.trials), "--seed",
            str(arguments.seed), "--min-repeat-ms", "2"]


def tune(kiln, words, database, arguments):
    """Tunes with an empty database, and returns what a row says of it."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        if os.path.exists(database + suffix):
            os.remove(database + suffix)
    started = time.monotonic()
    run = subprocess.run([*command_of(kiln, words, database, arguments), "--json"], capture_output=True, text=True)
    seconds = time.monotonic() - started
    for line in reversed(run.stdout.splitlines()):
        event = json.loads(line)
        if event.get("event") != "end":
            continue
        task = event["tasks"][0]
        return {"us": (task["best_cost_s"] or 0) * 1e6, "trials": event["trials_done"], "errors": event["errors"],
                "seconds": seconds, "steps": task.get("steps"), "message": event["message"]}
    return {"us": 0, "trials": 0, "errors": {"tune": run.returncode}, "seconds": seconds, "steps": None,
            "message": run.stderr[-500:]}


def median_us(torch, *turns):
    """The median of 30 replays of a graph of 20 calls, or of more, so that each of `turns` has as many."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in turns:
            for _ in range(3):
                call()
    torch.cuda.synchronize()
    rounds = -(-20 // len(turns))
    graph, calls = torch.cuda.CUDAGraph(), rounds * len(turns)
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in turns:
                call()
    times = []
    for _ in range(33):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return sorted(times[3:])[15]


def copy_bandwidth(torch):
    """Bytes read and written in a second: the fastest of copies of 256 MiB to 4 GiB, all far beyond the L2 cache."""
    best = 0
    for elements in (1 << 26, 1 << 28, 1 << 30):
        source = torch.rand(elements, device="cuda")
        target = torch.empty_like(source)
        best = max(best, 2 * elements * 4 / (median_us(torch, lambda: target.copy_(source)) * 1e-6))
        del source, target
        torch.cuda.empty_cache()
    return best


def product_rate(torch):
    """Operations a second of a large product of float16."""
    x, y = (torch.rand((8192, 8192), device="cuda", dtype=torch.float16) for _ in range(2))
    return 2 * 8192**3 / (median_us(torch, lambda: x @ y) * 1e-6)


def peer_us(torch, row, expression, inputs, compiled):
    names = {"torch": torch, "F": torch.nn.functional}
    dtypes = {"float32": torch.float32, "float16": torch.float16}
    for name, (kind, shape) in zip("xyzvw", inputs):
        if kind == "int32":
            names[name] = torch.randint(0, inputs[-1][1][0], shape, device="cuda", dtype=torch.int32)
        else:
            names[name] = torch.rand(shape, device="cuda", dtype=dtypes[kind]) * 2 - 1
    call = eval("lambda: " + expression, names)  # pylint: disable=eval-used
    with torch.no_grad():
        return median_us(torch, torch.compile(call, mode="max-autotune-no-cudagraphs") if compiled else call)


def number(value, digits=4):
    return "" if not value else f"{value:.{digits}g}"


def table(rows, bandwidth, device):
    lines = [f"{device}; a copy moves {bandwidth * 1e-12:.2f} TB/s, counting bytes read and written.", "",
             "| workload | MB | Kiln, us | trials | PyTorch, us | PyTorch / Kiln | limit, us | limit / Kiln |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        us, peer, limit = row["us"], row.get("peer_us", 0), row.get("limit_us", 0)
        lines.append(f"| {row['name']} | {row['bytes'] * 1e-6:.3g} | {number(us)} | {row['trials']} | {number(peer)} | "
                     f"{number(us and peer / us, 3)} | {number(limit)} | {number(us and limit / us, 2)} |")
    return "\n".join(lines) + "\n"


def arguments_of(description, **numbers):
    """The arguments of a script that tunes rows beside PyTorch; `words` are those of --only.

    `numbers` are whole numbers that the script takes besides, with their defaults.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rows that contain one of these words, with ; between them")
    parser.add_argument("--no-torch", action="store_true", help="no peer and no limit")
    parser.add_argument("--compile", action="store_true", help="the peer is the faster of eager and compiled")
    parser.add_argument("--list", action="store_true", help="what would be tuned, and no more")
    parser.add_argument("--budget-s", type=float, default=540, help="begin no further row after so long")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    arguments.words = [word for word in arguments.only.split(";") if word]
    os.makedirs(arguments.folder, exist_ok=True)
    return arguments


class Report:
    """The rows so far. Each new one is printed, and NAME.json and NAME.md of the folder are written anew."""

    def __init__(self, arguments, name):
        self.arguments, self.path = arguments, os.path.join(arguments.folder, name)
        self.torch, self.bandwidth, self.device, self.rows = None, 0, "unknown device", []
        self.operations_per_s = 0
        if not (arguments.no_torch or arguments.list):
            import torch  # pylint: disable=import-outside-toplevel
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.benchmark = True
            self.torch, self.bandwidth, self.device = torch, copy_bandwidth(torch), torch.cuda.get_device_name()
        self.started = time.monotonic()

    def wants(self, name):
        return not self.arguments.words or any(word in name for word in self.arguments.words)

    def has_time(self, name):
        if time.monotonic() - self.started <= self.arguments.budget_s:
            return True
        print(f"no time is left for {name}", file=sys.stderr)
        return False

    def peer(self, row, measure):
        """Adds the limit and the peer's time; `measure` takes whether the peer is compiled."""
        if not self.torch:
            return
        row["limit_us"] = row["bytes"] / self.bandwidth * 1e6
        if row.get("operations"):
            self.operations_per_s = self.operations_per_s or product_rate(self.torch)
            row["limit_us"] = max(row["limit_us"], row["operations"] / self.operations_per_s * 1e6)
        try:
            row["peer_us"] = measure(False)
            if self.arguments.compile:
                row["peer_us"] = min(row["peer_us"], measure(True))
        except Exception as error:  # pylint: disable=broad-except
            row["peer_error"] = str(error)[:300]
        self.torch.cuda.empty_cache()

    def add(self, row):
        self.rows.append(row)
        print(f"{row['name']}: {number(row['us'])} us after {row['trials']} trials, PyTorch "
              f"{number(row.get('peer_us', 0))}, limit {number(row.get('limit_us', 0))}, {row['seconds']:.1f} s "
              f"{row['errors'] or ''} {row.get('peer_error', '')}{'' if row['us'] else row['message']}", flush=True)
        with open(self.path + ".json", "w", encoding="utf-8") as out:
            json.dump({"device": self.device, "copy_bytes_per_s": self.bandwidth, "rows": self.rows}, out, indent=1)
        with open(self.path + ".md", "w", encoding="utf-8") as out:
            out.write(table(self.rows, self.bandwidth, self.device))

    def measure_text(self, name, text, size, peer_us, operations=0, cold=False):
        """One row: the computation of the text, `size` bytes of inputs and outputs, and its peer.

        With `operations` of products of float16 the limit is the larger one of two: that of a copy of the bytes, and
        that of a large product of so many. `peer_us` is called with True to compile, and gives microseconds. `cold`:
        no call finds its inputs in a cache. With --list prints the command alone.
        """
        if not self.wants(name) or not self.has_time(name):
            return
        path = os.path.join(self.arguments.folder, name.replace(" ", "_") + ".te")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        database, words = path.removesuffix(".te") + ".db", [path, *(["--flush-cache"] if cold else [])]
        if self.arguments.list:
            print(" ".join(command_of(self.arguments.kiln, words, database, self.arguments)))
            return
        row = {"name": name, "bytes": size, "operations": operations}
        self.peer(row, peer_us)
        row.update(tune(self.arguments.kiln, words, database, self.arguments))
        self.add(row)

    def end(self):
        if self.rows:
            print(table(self.rows, self.bandwidth, self.device))


def print_ratios(rows):
    """Prints the geometric mean and the worst of the peer's time over Kiln's."""
    ratios = [row["peer_us"] / row["us"] for row in rows if row["us"] and row.get("peer_us")]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"PyTorch / Kiln of {len(ratios)} rows: geometric mean {mean:.3f}, worst {min(ratios):.3f}, "
              f"{sum(ratio < 1 for ratio in ratios)} below 1")


def main():
    arguments = arguments_of(__doc__)
    report = Report(arguments, "memory_bound")
    for name, expression in WORKLOADS:
        if not report.wants(name) or not report.has_time(name):
            continue
        inputs, output = tensors_of(arguments.kiln, name)
        row = {"name": name, "bytes": bytes_of(name, inputs, output, words_of(name)[1])}
        if arguments.list:
            print(name, inputs, output, row["bytes"])
            continue
        report.peer(row, lambda compiled: peer_us(report.torch, name, expression, inputs, compiled))
        file = "".join(c if c.isalnum() else "_" for c in name) + ".db"
        row.update(tune(arguments.kiln, words_of(name)[0], os.path.join(arguments.folder, file), arguments))
        report.add(row)
    report.end()


if __name__ == "__main__":
    main()
