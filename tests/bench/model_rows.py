#!/usr/bin/python3
"""Computations of today's models with fixed sizes, on a GPU, beside PyTorch: thirteen rows and their geometric mean.

usage: model_rows.py KILN FOLDER [--trials N] [--seed N] [--only "WORD;..."] [--compile] [--no-torch] [--list]

The mean and the variance of images and log_softmax of a vocabulary, in float32 and float16; a gated product, products
with the weights of experts, and products with weights of 8 and 4 bits; attention with a causal mask, of many heads, of
heads that share keys, and of one query; a convolution. Peers and limits are those of held_out.py: of weights of fewer
bits, whose inputs are cold, the same product with 16 bits counts as well. With --compile torch.compile's max-autotune
is a peer, too. Writes FOLDER/model_rows.json and .md.
"""

import cliffs
import held_out
import several_sums
from memory_bound import Report, arguments_of, print_ratios


def reductions():
    """Two sums of one reduction, and log_softmax."""
    for kind in several_sums.SIZES:
        extents = [32, 56, 56, 256]
        yield f"moments {kind} 32x56x56x256 over 0,1,2", *held_out.of_several_sums(
            kind, extents, several_sums.moments(kind, extents, [0, 1, 2]))
    for kind in several_sums.SIZES:
        yield f"log_softmax {kind} 8x50257", *held_out.of_log_softmax(kind, [8, 50257])


def products():
    yield "gated 128x4096x11008", *held_out.of_cliffs(cliffs.gated(128, 4096, 11008), 4 * 128 * 4096 * 11008)
    yield "experts 8, 16 blocks of 64, 2048x4096", *held_out.of_cliffs(
        cliffs.experts_of_blocks(16, 64, 2048, 4096, 8), 2 * 1024 * 2048 * 4096)
    for bits in (8, 4):
        yield f"weights of {bits} bits 16x4096x4096", *held_out.of_cliffs(
            cliffs.unpacked(bits, 16, 4096, 4096), 2 * 16 * 4096 * 4096)


def attentions(kiln):
    yield held_out.attention_row(kiln, 32, 2048, 128, 1, 2048)
    yield held_out.attention_row(kiln, 128, 1024, 64, 0, 1024)
    yield held_out.attention_row(kiln, 32, 4096, 128, 1, 4096, key_heads=8)
    yield held_out.attention_row(kiln, 32, 1, 128, 0, 4096)


def main():
    arguments = arguments_of(__doc__)
    report = Report(arguments, "model_rows")
    rows = [*reductions(), *products(), *attentions(arguments.kiln),
            held_out.conv_row(arguments.kiln, 8, 14, 512, 512, 3, 1)]
    for name, text, peers, size, operations in rows:
        cliffs.measure(report, name, text, peers, size, operations)
    report.end()
    print_ratios(report.rows)


if __name__ == "__main__":
    main()
