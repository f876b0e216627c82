#!/usr/bin/python3
"""Products of one task, products through an index, and unpacked factors on a GPU, beside PyTorch.

usage: cliffs.py KILN FOLDER [--trials N] [--seed N] [--only "WORD;..."] [--no-torch] [--list]

Each computation is a text in FOLDER, tuned by `KILN tune FILE --target cuda` with a database of its own. PyTorch
computes the same in the same run, in each of several ways, the fastest of which counts: as its operators do, as
torch.compile does (with --compile), and of experts by torch._grouped_mm. All are the median of 30 replays of a CUDA
graph of 20 calls. The limit is the bytes of all inputs and outputs over the bandwidth of a large copy, measured at the
start; what fits the L2 cache stays there, so a small working set can be faster than it. Products with unpacked factors
are measured with cold inputs on both sides: each call reads other copies of them. --list prints the commands and no
more. Writes FOLDER/cliffs.json and .md.
"""

from memory_bound import Report, arguments_of, median_us

# silu(x W1) * (x W3).
GATED = """input x: float16[{m}, {k}]
input w1: float16[{k}, {n}]
input w3: float16[{k}, {n}]
g[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(w1[k, j])
u[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(w3[k, j])
y[i: {m}, j: {n}] = float16(g[i, j] / (1.0 + exp(-g[i, j])) * u[i, j])
"""
# Blocks of tokens of one expert each.
EXPERTS_OF_BLOCKS = """input x: float16[{blocks}, {m}, {k}]
@range(0, {experts}, {run}) input expert: int32[{blocks}]
input w: float16[{experts}, {k}, {n}]
s[b: {blocks}, i: {m}, j: {n}] = sum(k: {k}) float32(x[b, i, k]) * float32(w[expert[b], k, j])
y[b: {blocks}, i: {m}, j: {n}] = float16(s[b, i, j])
"""
# Tokens, each with an expert.
EXPERTS_OF_TOKENS = """input x: float16[{m}, {k}]
@range(0, {experts}, {run}) input expert: int32[{m}]
input w: float16[{experts}, {k}, {n}]
s[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(w[expert[i], k, j])
y[i: {m}, j: {n}] = float16(s[i, j])
"""
# Rows that an index chooses.
CHOSEN_ROWS = """input x: float16[{rows}, {k}]
@range(0, {rows}) input chosen: int32[{m}]
input w: float16[{k}, {n}]
s[i: {m}, j: {n}] = sum(k: {k}) float32(x[chosen[i], k]) * float32(w[k, j])
y[i: {m}, j: {n}] = float16(s[i, j])
"""
# Weights of 8 bits, and of 4 bits two in a byte, with a scale for each group of terms.
BYTES = """input x: float16[{m}, {k}]
input w: int8[{k}, {n}]
input scale: float16[{groups}, {n}]
v[k: {k}, j: {n}] = float16(w[k, j]) * scale[k // {group}, j]
s[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(v[k, j])
y[i: {m}, j: {n}] = float16(s[i, j])
"""
NIBBLES = """input x: float16[{m}, {k}]
input w: uint8[{half}, {n}]
input scale: float16[{groups}, {n}]
v[k: {k}, j: {n}] = float16(int32((w[k // 2, j] >> uint8(k % 2 * 4)) & uint8(15)) - 8) * scale[k // {group}, j]
s[i: {m}, j: {n}] = sum(k: {k}) float32(x[i, k]) * float32(v[k, j])
y[i: {m}, j: {n}] = float16(s[i, j])
"""
GROUP = 128


def random(torch, *shape):
    return torch.rand(shape, device="cuda", dtype=torch.float16) * 2 - 1


def gated_peers(torch, sizes):
    x, w1, w3 = random(torch, sizes["m"], sizes["k"]), *(random(torch, sizes["k"], sizes["n"]) for _ in range(2))
    both = torch.cat((w1, w3), 1)

    def joined():
        g, u = (x @ both).chunk(2, 1)
        return torch.nn.functional.silu(g) * u
    return [lambda: torch.nn.functional.silu(x @ w1) * (x @ w3), joined]


def grouped(torch, x, w, counts):
    """Products of consecutive rows, so many of each expert; of bfloat16 where those of float16 are missing."""
    ends = torch.cumsum(torch.tensor(counts, device="cuda"), 0).to(torch.int32)
    short = [tensor.to(torch.bfloat16) for tensor in (x, w)]
    return [lambda: torch._grouped_mm(x, w, offs=ends),  # pylint: disable=protected-access
            lambda: torch._grouped_mm(*short, offs=ends)]  # pylint: disable=protected-access


def block_peers(torch, sizes):
    rows = sizes["blocks"] * sizes["m"]
    x, w = random(torch, rows, sizes["k"]), random(torch, sizes["experts"], sizes["k"], sizes["n"])
    return grouped(torch, x, w, [rows // sizes["experts"]] * sizes["experts"])


def token_peers(torch, sizes):
    x, w = random(torch, sizes["m"], sizes["k"]), random(torch, sizes["experts"], sizes["k"], sizes["n"])
    return grouped(torch, x, w, [sizes["m"] // sizes["experts"]] * sizes["experts"])


def row_peers(torch, sizes):
    x, w = random(torch, sizes["rows"], sizes["k"]), random(torch, sizes["k"], sizes["n"])
    chosen = torch.randint(0, sizes["rows"], (sizes["m"],), device="cuda")
    return [lambda: x[chosen] @ w]


def byte_peers(torch, sizes):
    x, scale = random(torch, sizes["m"], sizes["k"]), random(torch, sizes["groups"], 1, sizes["n"])
    w = torch.randint(-128, 128, (sizes["groups"], GROUP, sizes["n"]), device="cuda", dtype=torch.int8)
    unpacked = random(torch, sizes["k"], sizes["n"])
    return [lambda: x @ (w.half() * scale).view(sizes["k"], sizes["n"]), lambda: x @ unpacked]


def nibble_peers(torch, sizes):
    x, unpacked = random(torch, sizes["m"], sizes["k"]), random(torch, sizes["k"], sizes["n"])
    return [lambda: x @ unpacked]


class Peers:
    """Ways to compute a row. `cold`: measured with inputs that are in no cache."""

    def __init__(self, ways, sizes, cold):
        self.ways, self.sizes, self.cold = ways, sizes, cold

    def __call__(self, torch):
        return self.ways(torch, self.sizes)


def row(name, template, ways, size, cold=False, **sizes):
    """Name, text, peers and bytes."""
    extents = "x".join(str(value) for value in sizes.values())
    sizes |= {"groups": sizes["k"] // GROUP, "group": GROUP, "half": sizes["k"] // 2}
    # Blocks of tokens are ordered by their experts, as those of the peers are.
    sizes |= {"run": max(1, sizes.get("blocks", sizes["m"]) // sizes.get("experts", 1))}
    return f"{name} {extents}", template.format(**sizes), Peers(ways, sizes, cold), size


def gated(m, k, n):
    return row("gated", GATED, gated_peers, 2 * (m * k + 2 * k * n + m * n), m=m, k=k, n=n)


def experts_of_blocks(blocks, m, k, n, experts):
    size = 2 * (experts * k * n + blocks * m * (k + n))
    return row("experts_of_blocks", EXPERTS_OF_BLOCKS, block_peers, size, blocks=blocks, m=m, k=k, n=n, experts=experts)


def experts_of_tokens(m, k, n, experts):
    size = 2 * (experts * k * n + m * (k + n))
    return row("experts_of_tokens", EXPERTS_OF_TOKENS, token_peers, size, m=m, k=k, n=n, experts=experts)


def chosen_rows(rows, m, k, n):
    return row("chosen_rows", CHOSEN_ROWS, row_peers, 2 * (m * k + k * n + m * n), rows=rows, m=m, k=k, n=n)


def unpacked(bits, m, k, n):
    name, template, peers = {8: ("bytes", BYTES, byte_peers), 4: ("nibbles", NIBBLES, nibble_peers)}[bits]
    size = k * n * bits // 8 + 2 * (m * k + m * n + k // GROUP * n)
    return row(name, template, peers, size, cold=True, m=m, k=k, n=n)


def workloads():
    for m in (16, 128, 1024):
        yield gated(m, 4096, 11008)
    for blocks, m in ((16, 64), (8, 16)):
        yield experts_of_blocks(blocks, m, 2048, 4096, 8)
    for m in (128, 1024):
        yield experts_of_tokens(m, 2048, 4096, 8)
    yield chosen_rows(8192, 1024, 2048, 4096)
    for bits in (8, 4):
        for m in (1, 16, 64):
            yield unpacked(bits, m, 4096, 4096)


def peer_us(torch, ways, compiled, mode):
    """The fastest of the ways, each of which is a list of calls that take turns.

    Ways that this PyTorch has not are left out.
    """
    best, error = 0, None
    for calls in ways:
        try:
            with torch.no_grad():
                us = median_us(torch, *(torch.compile(call, mode=mode) if compiled else call for call in calls))
            best = min(best, us) if best else us
        except Exception as reason:  # pylint: disable=broad-except
            error = reason
    if not best:
        raise error
    return best


def measure(report, name, text, peers, size, operations=0, mode="max-autotune-no-cudagraphs"):
    """One row of the report.

    The inputs of a cold row rotate among copies of them, which besides those of one call hold twice the second cache
    together.
    """
    cold = getattr(peers, "cold", False)

    def fastest_us(compiled):
        cache = report.torch.cuda.get_device_properties(0).L2_cache_size
        copies = [peers(report.torch) for _ in range(1 + -(-2 * cache // size) if cold else 1)]
        return peer_us(report.torch, list(zip(*copies)), compiled, mode)
    report.measure_text(name, text, size, fastest_us, operations, cold)


def main():
    arguments = arguments_of(__doc__)
    report = Report(arguments, "cliffs")
    for name, text, peers, size in workloads():
        measure(report, name, text, peers, size)
    report.end()


if __name__ == "__main__":
    main()
