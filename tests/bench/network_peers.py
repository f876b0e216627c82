#!/usr/bin/python3
"""Networks on this GPU: Kiln beside PyTorch, in the same run.

usage: network_peers.py KILN FOLDER [--networks NAME[:BATCH],...] [--type TYPE] [--minutes N] [--trials N] [--seed N]
                        [--variants NAME] [--layouts NAME,...] [--compile] [--freeze] [--verify]

Each network of the zoo is tuned by `KILN tune network:NAME --target cuda` for --minutes into FOLDER/NAME.db (--minutes 0:
compiled with what is there), compiled, and timed. The peer is the same network in PyTorch (peer_networks.py): random
weights, cuDNN choosing by measuring, channels of images first and last (--layouts), called by itself and as a CUDA graph;
with --compile also by torch.compile in its mode max-autotune, to which weights are constants with --freeze. --type is
float32, tf32 (10 bits of each factor instead of 23), float16 or bfloat16 of both sides; beside float32 stands PyTorch's
TF32. Prints a table in microseconds a run: the fastest of PyTorch's ways, and how many times as long as Kiln it takes.
--verify runs `KILN verify --kernels` on the very file. FOLDER/NAME.txt has them all as they come, with what tuning,
compiling and verifying said last, and the trials that failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import peer_networks

LAYOUTS = ("NCHW", "NHWC")
NETWORKS = ["resnet-50", "mobilenet_v2", "squeezenet_v1.1", "inception_v3", "bert-base", "vit-b-16", "resnet-50:16"]


def median_us(torch, call, calls):
    """Median of 20 readings of so many calls back to back, by the GPU's clock."""
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return sorted(times)[len(times) // 2]


def peers(torch, arguments, name, batch, dtype):
    """(name, microseconds, seconds that it took to compile) of each way to run it."""
    images = name not in peer_networks.OF_WORDS
    for layout in arguments.layouts if images else ("",):
        network, x = peer_networks.make(name, batch)
        network = network.cuda().to(dtype)
        x = x.cuda().to(dtype) if x.is_floating_point() else x.cuda()
        if layout == "NHWC":
            network, x = [thing.to(memory_format=torch.channels_last) for thing in (network, x)]
        for _ in range(5):
            network(x)
        yield f"eager {layout}".strip(), median_us(torch, lambda: network(x), 10), 0
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            network(x)
        yield f"CUDA graph {layout}".strip(), median_us(torch, graph.replay, 20), 0
        if arguments.compile:
            start = time.monotonic()
            fast = torch.compile(network, mode="max-autotune")
            for _ in range(5):
                fast(x)
            seconds = time.monotonic() - start
            frozen = "frozen, " if arguments.freeze else ""
            yield f"{frozen}compiled {layout}".strip(), median_us(torch, lambda: fast(x), 20), seconds


def allow_tf32(torch, is_allowed):
    """In products and convolutions. torch.compile asks cuDNN's newer switches, which the older ones leave as they are."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = is_allowed
    for switch in (torch.backends.cudnn, getattr(torch.backends.cudnn, "conv", None)):
        if hasattr(switch, "fp32_precision"):
            switch.fp32_precision = "tf32" if is_allowed else "ieee"


def run(command):
    """What it prints."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"network_peers: {' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def failed_trials(kiln, said, database):
    """What `kiln jobs` says of them, where tuning said that there are some."""
    job = re.search(r"failed trials: .* jobs (\w+)", said)
    return run([kiln, "jobs", job[1], "--db", database]) if job else ""


def ours(arguments, name, batch, log):
    """Microseconds of a run by Kiln, and by its records."""
    path = os.path.join(arguments.folder, f"{name}-{batch}" if batch > 1 else name)
    network = [f"network:{name}", "--batch", str(batch), "--target", "cuda", "--db", path + ".db"]
    network += {"float32": [], "tf32": ["--math", "tf32"]}.get(arguments.type, ["--dtype", arguments.type])
    if arguments.variants:
        network += ["--variants", arguments.variants]
    if arguments.minutes > 0:
        said = run([arguments.kiln, "tune", *network, "--minutes", str(arguments.minutes), "--trials", str(arguments.trials),
                    "--seed", str(arguments.seed), "--quiet"])
        log.write("\n".join(said.splitlines()[-40:]) + "\n" + failed_trials(arguments.kiln, said, path + ".db"))
    log.write(run([arguments.kiln, "compile", *network, "--kernels", "-o", path + ".kiln"]))
    log.write(run([arguments.kiln, "bench", path + ".kiln", "--profile"]))
    bench = json.loads(run([arguments.kiln, "bench", path + ".kiln", "--json", "--repeat", "20"]))
    log.write(f"Kiln: {bench['median_s'] * 1e6:.1f} us, by its records {bench['expected_s'] * 1e6:.1f}\n")
    if arguments.verify:
        log.write(run([arguments.kiln, "verify", path + ".kiln", "--kernels"]))
    log.flush()
    return bench["median_s"] * 1e6, bench["expected_s"] * 1e6


def row(torch, arguments, name, batch):
    """The network's line of the table."""
    with open(os.path.join(arguments.folder, f"{name}-{batch}.txt"), "w", encoding="utf-8") as log:
        kiln_us, records_us = ours(arguments, name, batch, log)
        best = []
        for kind in ("float32", "tf32") if arguments.type == "float32" else (arguments.type,):
            allow_tf32(torch, kind == "tf32")
            dtype = getattr(torch, "float32" if kind == "tf32" else kind)
            ways = {}
            for way, us, seconds in peers(torch, arguments, name, batch, dtype):
                ways[way] = us
                log.write(f"PyTorch {kind} {way}: {us:.1f} us{f' after {seconds:.0f} s' if seconds else ''}\n")
                log.flush()
            way = min(ways, key=ways.get)
            best.append((ways[way], way))
    columns = [f"{name}{f', batch {batch}' if batch > 1 else ''}", f"{kiln_us:.1f}", f"{records_us:.1f}",
               f"{best[0][0]:.1f} ({best[0][1]})", f"{best[0][0] / kiln_us:.2f}"]
    columns += [f"{us:.1f} ({way})" for us, way in best[1:]]
    return f"| {' | '.join(columns)} |"


def layouts(text):
    named = text.split(",")
    if not set(named) <= set(LAYOUTS):
        raise argparse.ArgumentTypeError(f"{text}: expected some of {','.join(LAYOUTS)}")
    return named


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--trials", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", default="float32", choices=["float32", "tf32", "float16", "bfloat16"])
    parser.add_argument("--variants", default="", help="of `kiln tune`")
    parser.add_argument("--layouts", type=layouts, default=LAYOUTS, help="of images in PyTorch, of " + ",".join(LAYOUTS))
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--freeze", action="store_true", help="torch.compile folds weights")
    parser.add_argument("--verify", action="store_true")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)

    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cudnn.benchmark = True
    if arguments.freeze:
        import torch._inductor.config  # pylint: disable=import-outside-toplevel
        torch._inductor.config.freezing = True  # pylint: disable=protected-access
    print(torch.cuda.get_device_name())
    columns = ["network", "Kiln", "by its records", f"PyTorch {arguments.type}", "times"]
    columns += ["PyTorch TF32"] if arguments.type == "float32" else []
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with torch.no_grad():
        for network in arguments.networks.split(","):
            name, _, batch = network.partition(":")
            print(row(torch, arguments, name, int(batch or 1)), flush=True)


if __name__ == "__main__":
    main()
