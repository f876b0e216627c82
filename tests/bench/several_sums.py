#!/usr/bin/python3
"""Reductions of one and of several values on a GPU: means with variances, log_softmax and argmax, beside PyTorch.

usage: several_sums.py KILN FOLDER [--trials N] [--seed N] [--only "WORD;..."] [--no-torch] [--list]

Each computation is a text in FOLDER, tuned by `KILN tune FILE --target cuda` with a database of its own. PyTorch
computes the same in the same run: the median of 30 replays of a CUDA graph of 20 calls, and compiled (torch.compile)
where --compile is given. The limit is the bytes of all inputs and outputs over the bandwidth of a large copy, measured
at the start; what fits the L2 cache stays there, so a small working set can be faster than it. --list prints the
commands and no more. Writes FOLDER/several_sums.json and .md.
"""

from memory_bound import Report, arguments_of, median_us

MOMENTS = """input x: {type}[{shape}]
s[{kept}] = sum({summed}) ({x}, {x} * {x})
y[{kept}] = ({type}(s.v0[{names}] / {count}),
    {type}(s.v1[{names}] / {count} - (s.v0[{names}] / {count}) * (s.v0[{names}] / {count})))
"""
LOG_SOFTMAX = """input x: {type}[{rows}, {columns}]
m[i: {rows}] = max(k: {columns}) {x}
s[i: {rows}] = sum(k: {columns}) exp({x} - m[i])
y[i: {rows}, k: {columns}] = {type}({x} - m[i] - log(s[i]))
"""
# The maximum and the sum as one reduction of two values.
ONLINE = """combine online(m: float32, @range(0, 4) s: float32; m2, s2) from (-1e+30, 0.0) =
    (max(m, m2), s * exp(m - max(m, m2)) + s2 * exp(m2 - max(m, m2)))
input x: {type}[{rows}, {columns}]
l[i: {rows}] = online(k: {columns}) ({x}, 1.0)
y[i: {rows}, k: {columns}] = {type}({x} - l.v0[i] - log(l.v1[i]))
"""
ARGMAX = """input x: {type}[{rows}, {columns}]
y[i: {rows}] = argmax(k: {columns}) (k, x[i, k])
"""
SIZES = {"float32": 4, "float16": 2}


def element(kind, indices):
    """The element as it is summed."""
    return f"x[{indices}]" if kind == "float32" else f"float32(x[{indices}])"


def moments(kind, extents, axes):
    """Text, PyTorch's expression and bytes of the mean and the variance over some axes."""
    names = ["n", "h", "w", "c"][-len(extents):]
    kept = [i for i in range(len(extents)) if i not in axes]
    declare = lambda chosen: ", ".join(f"{names[i]}: {extents[i]}" for i in chosen)
    count, elements, results = 1, 1, 1
    for i, extent in enumerate(extents):
        elements *= extent
        count *= extent if i in axes else 1
        results *= extent if i in kept else 1
    text = MOMENTS.format(type=kind, shape=", ".join(map(str, extents)), kept=declare(kept), summed=declare(axes),
                          x=element(kind, ", ".join(names)), names=", ".join(names[i] for i in kept),
                          count=f"{float(count)}")
    return text, f"torch.var_mean(x, {tuple(axes)}, correction=0)", (elements + 2 * results) * SIZES[kind]


def rows_of(template, expression, outputs):
    """The same of a computation on rows; `outputs` is how many bytes it writes for a type and an extent."""
    def make(kind, extents):
        rows, columns = extents
        text = template.format(type=kind, rows=rows, columns=columns, x=element(kind, "i, k"))
        return text, expression, rows * columns * SIZES[kind] + outputs(kind, rows, columns)
    return make


def workloads():
    """Name, type, shape of the input, text, expression, bytes."""
    whole = lambda kind, rows, columns: rows * columns * SIZES[kind]
    log_softmax = rows_of(LOG_SOFTMAX, "F.log_softmax(x, -1)", whole)
    online = rows_of(ONLINE, "F.log_softmax(x, -1)", whole)
    argmax = rows_of(ARGMAX, "torch.max(x, -1)", lambda kind, rows, columns: rows * (4 + SIZES[kind]))
    cases = [("moments_nhw", [32, 56, 56, 256], lambda kind, extents: moments(kind, extents, [0, 1, 2])),
             ("moments_hw", [32, 56, 56, 256], lambda kind, extents: moments(kind, extents, [1, 2])),
             ("moments_c", [4096, 4096], lambda kind, extents: moments(kind, extents, [1])),
             ("log_softmax", [8, 50257], log_softmax), ("log_softmax", [128, 32000], log_softmax),
             ("log_softmax_online", [8, 50257], online), ("log_softmax_online", [128, 32000], online),
             ("argmax", [8, 50257], argmax)]
    for name, extents, make in cases:
        for kind in SIZES:
            shape = "x".join(map(str, extents))
            yield f"{name} {shape} {kind}", kind, extents, *make(kind, extents)


def peer_us(torch, kind, extents, expression, compiled):
    x = torch.rand(extents, device="cuda", dtype=getattr(torch, kind)) * 2 - 1
    call = eval("lambda: " + expression,  # pylint: disable=eval-used
                {"torch": torch, "F": torch.nn.functional, "x": x})
    with torch.no_grad():
        return median_us(torch, torch.compile(call, mode="max-autotune-no-cudagraphs") if compiled else call)


def main():
    arguments = arguments_of(__doc__)
    report = Report(arguments, "several_sums")
    for name, kind, extents, text, expression, size in workloads():
        report.measure_text(name, text, size,
                            lambda compiled: peer_us(report.torch, kind, extents, expression, compiled))
    report.end()


if __name__ == "__main__":
    main()
