#!/usr/bin/python3
"""A compiled network on a GPU beside PyTorch in the same run.

usage: network_peers.py KILN FILE.kiln [--batch N]

FILE.kiln is what `KILN compile network:resnet-18` wrote. The peer is the same network in PyTorch with full float32 (no TF32),
random weights, cuDNN choosing by measuring, in both layouts, called by itself and as a CUDA graph. Prints microseconds a run.
"""
import argparse
import json
import subprocess

import peer_networks


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


def peers(torch, batch):
    """(name, microseconds) of each way to run it."""
    for name, layout in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
        network = peer_networks.residual(18).cuda().to(memory_format=layout)
        x = torch.rand(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
        for _ in range(5):
            network(x)
        yield f"PyTorch eager {name}", median_us(torch, lambda: network(x), 20)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            network(x)
        yield f"PyTorch CUDA graph {name}", median_us(torch, graph.replay, 50)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("file")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()

    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(torch.cuda.get_device_name())
    ours = json.loads(subprocess.run([arguments.kiln, "bench", arguments.file, "--json", "--repeat", "20"], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout)
    print(f"Kiln: {ours['median_s'] * 1e6:.1f} us (by its records {ours['expected_s'] * 1e6:.1f})")
    with torch.no_grad():
        for name, us in peers(torch, arguments.batch):
            print(f"{name}: {us:.1f} us")


if __name__ == "__main__":
    main()
