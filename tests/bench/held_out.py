#!/usr/bin/python3
"""Computations of language models and networks whose sizes are drawn by a seed, on a GPU, beside PyTorch.

usage: held_out.py KILN FOLDER [--draw N] [--count N] [--trials N] [--seed N] [--only "WORD;..."] [--no-torch] [--list]

The kinds take turns: several sums in one reduction, log_softmax, gated products, products with the weights of an
expert, rows that an index chooses, weights of 8 and 4 bits (cold), attention, attention of one query, dense layers,
convolutions; float16, and reductions of float32 as well. --draw seeds the sizes, --seed the search. Each row is tuned
with a database of its own. Its peers run in the same command: PyTorch's operators (cuBLAS, cuDNN, each backend of
scaled_dot_product_attention), and with --compile torch.compile in its default mode. The limit is the larger one of a
copy of all inputs and outputs, and of a product of as many operations. Prints the geometric mean and the worst of
PyTorch's time over Kiln's. Writes FOLDER/held_out.json and .md.
"""

import random
import subprocess

import cliffs
import several_sums
from memory_bound import Report, arguments_of, print_ratios


def text_of(kiln, operator, *numbers):
    command = [kiln, "show", operator, "--args", ",".join(map(str, numbers)), "--dtype", "float16", "--as", "dag"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def of_several_sums(kind, extents, made):
    """A row as several_sums.py makes them."""
    text, expression, size = made

    def peers(torch):
        x = torch.rand(extents, device="cuda", dtype=getattr(torch, kind)) * 2 - 1
        return [eval("lambda: " + expression,  # pylint: disable=eval-used
                     {"torch": torch, "F": torch.nn.functional, "x": x})]
    return text, peers, size, 0


def of_cliffs(made, operations):
    _, text, peers, size = made
    return text, peers, size, operations


def draw_moments(rng, _kiln):
    kind, axes = rng.choice(["float32", "float16"]), rng.choice([[0, 1, 2], [1, 2], [3]])
    extents = [rng.choice([4, 16, 48]), rng.choice([14, 28, 40]), rng.choice([14, 28, 40]), rng.choice([96, 192, 512])]
    return (f"moments {kind} {'x'.join(map(str, extents))} over {','.join(map(str, axes))}",
            *of_several_sums(kind, extents, several_sums.moments(kind, extents, axes)))


def of_log_softmax(kind, extents):
    whole = lambda kind, rows, columns: rows * columns * several_sums.SIZES[kind]
    make = several_sums.rows_of(several_sums.LOG_SOFTMAX, "F.log_softmax(x, -1)", whole)
    return of_several_sums(kind, extents, make(kind, extents))


def draw_log_softmax(rng, _kiln):
    kind, extents = rng.choice(["float32", "float16"]), [rng.choice([1, 24, 96, 640]), rng.choice([5000, 32128, 49152])]
    return f"log_softmax {kind} {'x'.join(map(str, extents))}", *of_log_softmax(kind, extents)


def draw_gated(rng, _kiln):
    m, k, n = rng.choice([8, 48, 192, 512]), rng.choice([1024, 2560, 3584]), rng.choice([2816, 6912, 9728])
    return f"gated {m}x{k}x{n}", *of_cliffs(cliffs.gated(m, k, n), 4 * m * k * n)


def draw_experts(rng, _kiln):
    experts, m = rng.choice([4, 8, 16]), rng.choice([16, 32, 128])
    k, n = rng.choice([1024, 1536, 2880]), rng.choice([768, 2048, 2880])
    made = cliffs.experts_of_blocks(experts * 2, m, k, n, experts)
    return f"experts {experts} of {2 * m}x{k}x{n}", *of_cliffs(made, 4 * experts * m * k * n)


def draw_chosen(rng, _kiln):
    rows, m = rng.choice([4096, 16384]), rng.choice([64, 256, 768])
    k, n = rng.choice([1024, 1536, 3072]), rng.choice([1024, 2560])
    made = cliffs.chosen_rows(rows, m, k, n)
    return f"chosen {m} of {rows} rows x{k}x{n}", *of_cliffs(made, 2 * m * k * n)


def draw_unpacked(rng, _kiln):
    bits, m = rng.choice([8, 4]), rng.choice([1, 4, 16, 48])
    k, n = rng.choice([2048, 3072, 8192]), rng.choice([2048, 5120])
    return f"weights of {bits} bits {m}x{k}x{n}", *of_cliffs(cliffs.unpacked(bits, m, k, n), 2 * m * k * n)


def attention_row(kiln, heads, queries, size, causal, keys, key_heads=0):
    """Consecutive heads share the keys of one of `key_heads`; 0: each has its own."""
    key_heads = key_heads or heads

    def peers(torch):
        q = cliffs.random(torch, 1, heads, queries, size)
        k, v = (cliffs.random(torch, 1, key_heads, keys, size) for _ in range(2))
        attend = torch.nn.functional.scaled_dot_product_attention
        kinds = torch.nn.attention.SDPBackend

        def by(backend):
            def call():
                with torch.nn.attention.sdpa_kernel(backend):
                    return attend(q, k, v, is_causal=bool(causal), enable_gqa=key_heads != heads)
            return call
        return [by(backend) for backend in (kinds.FLASH_ATTENTION, kinds.CUDNN_ATTENTION, kinds.EFFICIENT_ATTENTION,
                                            kinds.MATH)]
    operations = 4 * heads * queries * keys * size // (2 if causal else 1)
    shared = f" of {key_heads} heads" if key_heads != heads else ""
    name = f"attention {heads}x{queries}x{size}, {keys} keys{shared}{', causal' if causal else ''}"
    text = text_of(kiln, "attention", heads, queries, size, causal, 0 if keys == queries else keys)
    if key_heads != heads:
        for tensor in ("p1", "p2"):
            text = text.replace(f"input {tensor}: float16[{heads},", f"input {tensor}: float16[{key_heads},")
            text = text.replace(f"{tensor}[b,", f"{tensor}[b // {heads // key_heads},")
    return name, text, peers, 4 * size * (heads * queries + key_heads * keys), operations


def draw_attention(rng, kiln):
    tokens, size = rng.choice([256, 768, 1536, 2560]), rng.choice([64, 96, 128])
    return attention_row(kiln, rng.choice([6, 20, 32]), tokens, size, rng.choice([0, 1]), tokens)


def draw_decode(rng, kiln):
    return attention_row(kiln, rng.choice([8, 24, 40]), 1, rng.choice([64, 128]), 0, rng.choice([512, 3072, 6144]))


def draw_dense(rng, kiln):
    m, n, k = rng.choice([1, 24, 96, 320, 1280]), rng.choice([960, 2304, 6400]), rng.choice([1280, 2560, 5120])

    def peers(torch):
        x, w = cliffs.random(torch, m, k), cliffs.random(torch, n, k)
        return [lambda: x @ w.t()]
    return f"dense {m}x{n}x{k}", text_of(kiln, "dense", m, n, k), peers, 2 * (m * k + n * k + m * n), 2 * m * n * k


def conv_row(kiln, batch, side, ci, co, window, stride):
    pad = window // 2
    out = (side + 2 * pad - window) // stride + 1

    def peers(torch):
        x, w = cliffs.random(torch, batch, ci, side, side), cliffs.random(torch, co, ci, window, window)
        last = [tensor.to(memory_format=torch.channels_last) for tensor in (x, w)]
        conv = torch.nn.functional.conv2d
        return [lambda: conv(x, w, stride=stride, padding=pad), lambda: conv(*last, stride=stride, padding=pad)]
    text = text_of(kiln, "conv2d_nhwc", batch, side, side, co, ci, window, window, stride, pad)
    size = 2 * (batch * side * side * ci + window * window * ci * co + batch * out * out * co)
    operations = 2 * batch * out * out * co * ci * window * window
    return f"conv {batch}x{side}x{side} {ci}-{co} {window}x{window} by {stride}", text, peers, size, operations


def draw_conv(rng, kiln):
    batch, side, stride = rng.choice([1, 4]), rng.choice([10, 20, 40]), rng.choice([1, 2])
    ci, co, window = rng.choice([48, 96, 192, 320]), rng.choice([96, 160, 384]), rng.choice([1, 3, 5])
    return conv_row(kiln, batch, side, ci, co, window, stride)


KINDS = [draw_moments, draw_log_softmax, draw_gated, draw_experts, draw_chosen, draw_unpacked, draw_attention,
         draw_decode, draw_dense, draw_conv]


def drawn(kiln, seed, count):
    """Name, text, peers, bytes and operations of each row; no two are the same."""
    rng, names = random.Random(seed), set()
    while len(names) < count:
        row = KINDS[len(names) % len(KINDS)](rng, kiln)
        if row[0] not in names:
            names.add(row[0])
            yield row


def main():
    arguments = arguments_of(__doc__, draw=1, count=40)
    print(f"sizes by --draw {arguments.draw}, --count {arguments.count}", flush=True)
    report = Report(arguments, "held_out")
    for name, text, peers, size, operations in drawn(arguments.kiln, arguments.draw, arguments.count):
        cliffs.measure(report, name, text, peers, size, operations, mode="default")
    report.end()
    print_ratios(report.rows)


if __name__ == "__main__":
    main()
