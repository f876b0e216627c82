#!/usr/bin/python3
"""Convolutions and matrix products on a GPU, tuned, beside cuDNN and cuBLAS in the same run.

usage: vendor_peers.py KILN FOLDER [--trials N] [--seed N] [--only "WORD;..."]

Each workload is tuned by `KILN tune ... --target cuda` with a database of its own in FOLDER. The peer is PyTorch in full
float32 (no TF32): of a convolution the faster of cuDNN's NCHW and NHWC, without bias and relu, which ours has; of a matrix
product cuBLAS. Peers are medians of 30 replays of a CUDA graph of 20 calls. Writes FOLDER/vendor_peers.json and .md.
"""
import argparse
import json
import os

from memory_bound import median_us, number, tune

# The words of `kiln tune`.
WORKLOADS = [
    "conv2d_nhwc 1,7,7,512,512,3,3,1,1 --epilogue bias,relu",
    "conv2d_nhwc 1,56,56,64,64,3,3,1,1 --epilogue bias,relu",
    "matmul 1024,1024,1024",
    "conv2d_nhwc 1,224,224,3,64,7,7,2,3 --epilogue bias,relu",
    "conv2d_nhwc 1,28,28,128,128,3,3,1,1 --epilogue bias,relu",
    "conv2d_nhwc 1,14,14,256,256,3,3,1,1 --epilogue bias,relu",
    "conv2d_nhwc 1,56,56,64,64,1,1,1,0 --epilogue bias,relu",
    "matmul 512,512,512",
    "matmul 2048,2048,2048",
]


def peer_us(torch, row):
    """The vendor's time, and which of its ways was the fastest."""
    op, words = row.split()[:2]
    numbers = [int(n) for n in words.split(",")]
    if op == "matmul":
        m, n, k = numbers
        a, b = torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")
        return median_us(torch, lambda: a @ b), "cuBLAS"
    batch, height, width, channels, filters, kernel_h, kernel_w, stride, pad = numbers
    ways = {}
    for name, layout in (("cuDNN NCHW", torch.contiguous_format), ("cuDNN NHWC", torch.channels_last)):
        x = torch.rand(batch, channels, height, width, device="cuda").to(memory_format=layout)
        w = torch.rand(filters, channels, kernel_h, kernel_w, device="cuda").to(memory_format=layout)
        ways[name] = median_us(torch, lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad))
    fastest = min(ways, key=ways.get)
    return ways[fastest], fastest


def table(rows, device):
    lines = [device, "", "| workload | Kiln, us | trials | errors | trials a second | vendor, us | | vendor / Kiln |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        us = row["us"]
        lines.append(f"| {row['name']} | {number(us)} | {row['trials']} | {row['errors'] or 0} | "
                     f"{number(row['trials'] / row['seconds'], 3)} | {number(row['peer_us'])} | {row['peer']} | "
                     f"{number(us and row['peer_us'] / us, 3)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("folder")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="rows that contain one of these words, with ; between them")
    arguments = parser.parse_args()
    wanted = [word for word in arguments.only.split(";") if word]
    os.makedirs(arguments.folder, exist_ok=True)

    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device, rows = torch.cuda.get_device_name(), []
    with torch.no_grad():
        for name in WORKLOADS:
            if wanted and not any(word in name for word in wanted):
                continue
            peer, way = peer_us(torch, name)
            torch.cuda.empty_cache()
            rows.append({"name": name, "peer_us": peer, "peer": way, **tune(arguments.kiln, name, arguments.folder, arguments)})
            print(f"{name}: {rows[-1]['us']:.2f} us, {way} {peer:.2f}, {rows[-1]['seconds']:.1f} s {rows[-1]['errors'] or ''}",
                  flush=True)
            with open(os.path.join(arguments.folder, "vendor_peers.json"), "w", encoding="utf-8") as out:
                json.dump({"device": device, "rows": rows}, out, indent=1)
    with open(os.path.join(arguments.folder, "vendor_peers.md"), "w", encoding="utf-8") as out:
        out.write(table(rows, device))
    print(table(rows, device))


if __name__ == "__main__":
    main()
