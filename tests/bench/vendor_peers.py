#!/usr/bin/python3
"""Convolutions and matrix products on a GPU, tuned, beside cuDNN, cuBLAS and PyTorch's attention in the same run.

usage: vendor_peers.py KILN FOLDER [--set NAME,... | --only "WORD;..."] [--type TYPE,...] [--trials N] [--seed N]
                       [--part I/N]

Each workload is tuned by `KILN tune ... --target cuda` with a database of its own in FOLDER. Types are float32, tf32,
float16, bfloat16, int8 and float8_e4m3fn; tf32 is `--dtype float32 --math tf32`. The peer is PyTorch in the same type
(float32: without TF32): of a convolution the faster of cuDNN's NCHW and NHWC, without bias and relu, which ours has; of a
matrix product cuBLAS, of 8 bits cuBLASLt (torch._int_mm, torch._scaled_mm), which wants the second factor as `dense` has
it; of attention scaled_dot_product_attention. Weights of TF32 convolutions lie along the sum, as they do in networks and as
cuDNN wants them for NHWC: output_first=1. --part 1/4 is every fourth row from the second on, for one of several GPUs.
Peers are medians of 30 replays of a CUDA graph of 20 calls. Writes
FOLDER/vendor_peers.json and .md.
"""
import argparse
import json
import math
import os
import time

from memory_bound import median_us, number, tune, words_of

EPILOGUE = " --epilogue bias,relu"


def convolutions(*rows):
    return [f"conv2d_nhwc {row}{EPILOGUE}" for row in rows]


# The words of `kiln tune`, to which the type is added.
SETS = {
    "mixed": convolutions("1,7,7,512,512,3,3,1,1", "1,56,56,64,64,3,3,1,1") + ["matmul 1024,1024,1024"] + convolutions(
        "1,224,224,64,3,7,7,2,3", "1,28,28,128,128,3,3,1,1", "1,14,14,256,256,3,3,1,1",
        "1,56,56,64,64,1,1,1,0") + ["matmul 512,512,512", "matmul 2048,2048,2048"],
    "products": [f"matmul {n},{n},{n}" for n in (512, 1024, 1536, 2048, 4096, 8192)],
    "transposed": [f"dense {n},{n},{n}" for n in (512, 1024, 1536, 2048, 4096, 8192)],
    "skinny": [f"dense {m},{n},{k}" for m in (1, 16, 64, 128) for n, k in ((768, 3072), (4096, 4096), (11008, 4096))],
    "attention": ["attention 12,128,64", "attention 16,1024,64", "attention 32,4096,128,causal=1"],
    # The twelve convolutions of ResNet-18, batch 1.
    "resnet-18": convolutions(
        "1,224,224,64,3,7,7,2,3", "1,56,56,64,64,3,3,1,1", "1,56,56,64,64,1,1,1,0", "1,56,56,128,64,3,3,2,1",
        "1,56,56,128,64,1,1,2,0", "1,28,28,128,128,3,3,1,1", "1,28,28,256,128,3,3,2,1", "1,28,28,256,128,1,1,2,0",
        "1,14,14,256,256,3,3,1,1", "1,14,14,512,256,3,3,2,1", "1,14,14,512,256,1,1,2,0", "1,7,7,512,512,3,3,1,1"),
    "resnet-50": convolutions(*(
        f"{batch},{layer}" for batch in (1, 16, 64)
        for layer in ("56,56,64,256,1,1,1,0", "28,28,512,128,1,1,1,0", "56,56,128,128,3,3,2,1", "14,14,256,256,3,3,1,1",
                      "14,14,1024,256,1,1,1,0", "7,7,2048,512,1,1,1,0"))),
    "vgg-16": convolutions(*(
        f"{batch},{layer}" for batch in (1, 16, 64)
        for layer in ("224,224,64,64,3,3,1,1", "112,112,128,128,3,3,1,1", "56,56,256,256,3,3,1,1", "28,28,512,512,3,3,1,1"))),
}
TYPES = ("float32", "tf32", "float16", "bfloat16", "int8", "float8_e4m3fn")


def part(text):
    first, step = text.split("/")
    return slice(int(first), None, int(step))


def typed(row, kind):
    if row.startswith("conv2d") and kind in ("tf32", "int8", "float8_e4m3fn"):
        row = row.replace(EPILOGUE, ",output_first=1" + EPILOGUE)
    if kind == "float32":
        return row
    return row + (" --math tf32" if kind == "tf32" else f" --dtype {kind}")


def tensor(torch, dtype, *shape):
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(dtype)


def product_call(torch, dtype, m, n, k):
    """a [m, k], b [n, k] transposed: 8-bit products want b so."""
    a, b = tensor(torch, dtype, m, k), tensor(torch, dtype, n, k).t()
    if dtype == torch.int8:
        return lambda: torch._int_mm(a, b)  # pylint: disable=protected-access
    if dtype.itemsize == 1:
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.float16)  # pylint: disable=protected-access
    return None


def peer_us(torch, row):
    """The vendor's time, and which of its ways was the fastest."""
    words, dtype_name = words_of(row)
    dtype = getattr(torch, dtype_name)
    is_tf32 = "tf32" in words
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = is_tf32
    op, numbers = words[0], [int(n.split("=")[-1]) for n in words[2].split(",")]
    if op == "attention":
        heads, rows, size = numbers[:3]
        q, k, v = (tensor(torch, dtype, 1, heads, rows, size) for _ in range(3))
        attend = torch.nn.functional.scaled_dot_product_attention
        return median_us(torch, lambda: attend(q, k, v, is_causal="causal=1" in words[2])), "PyTorch"
    if op in ("matmul", "dense"):
        m, n, k = numbers
        if dtype.itemsize == 1:
            return median_us(torch, product_call(torch, dtype, m, n, k)), "cuBLASLt"
        a = tensor(torch, dtype, m, k)
        b = tensor(torch, dtype, n, k).t() if op == "dense" else tensor(torch, dtype, k, n)
        return median_us(torch, lambda: a @ b), "cuBLAS"
    batch, height, width, filters, channels, kernel_h, kernel_w, stride, pad = numbers[:9]
    ways = {}
    for name, layout in (("cuDNN NCHW", torch.contiguous_format), ("cuDNN NHWC", torch.channels_last)):
        x = tensor(torch, dtype, batch, channels, height, width).to(memory_format=layout)
        w = tensor(torch, dtype, filters, channels, kernel_h, kernel_w).to(memory_format=layout)
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
    parser.add_argument("--set", default="mixed", help="of " + ", ".join(SETS))
    parser.add_argument("--type", default="float32", help="of " + ", ".join(TYPES))
    parser.add_argument("--only", default="", help="rows that contain one of these words, with ; between them")
    parser.add_argument("--part", type=part, default=slice(None), help="I/N: every N-th row from row I on")
    parser.add_argument("--budget-s", type=float, default=math.inf, help="begin no further row after so long")
    arguments = parser.parse_args()
    wanted = [word for word in arguments.only.split(";") if word]
    workloads = [typed(row, kind) for kind in arguments.type.split(",") for name in arguments.set.split(",")
                 for row in SETS[name]]
    workloads = [name for name in workloads if not wanted or any(word in name for word in wanted)][arguments.part]
    os.makedirs(arguments.folder, exist_ok=True)

    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cudnn.benchmark = True
    device, rows, started = torch.cuda.get_device_name(), [], time.monotonic()
    with torch.no_grad():
        for name in workloads:
            if time.monotonic() - started > arguments.budget_s:
                print(f"no time is left for {name}", flush=True)
                continue
            try:
                peer, way = peer_us(torch, name)
            # PyTorch has no such product.
            except (RuntimeError, ValueError) as error:
                peer, way = 0, str(error).splitlines()[0][:80]
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
