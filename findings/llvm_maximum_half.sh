#!/bin/bash
# Finding: LLVM 19's maximum and minimum of half lose a NaN that is compared with zero.
#
# llvm.maximum and llvm.minimum give NaN if an operand is NaN. For vectors of half on x86-64 without
# AVX512-FP16, the code of LLVM 19.1.7 gives maximum(nan, 0) = 0 and minimum(nan, -0) = -0, in
# either order of the operands. Every other pair of values that is tried here is right, and so are
# single halves and vectors of float. The same fault appears if the maximum is one of floats: for a
# float maximum of extended halves that is rounded to half again, LLVM makes the maximum of halves.
# LLVM 20 gives NaN.
#
# The script compiles LLVM IR by the clang of the package ziglang, which bundles LLVM 19.1.7
# (0.14.1) and 20.1.2 (0.15.2).
#
# Needs: x86-64 with F16C, python3 with venv, and PyPI. No GPU. Ends with status 0 while the
# packages behave as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/cache"

cat >"$folder/maximum.py" <<'PYTHON'
import ctypes
import itertools
import re
import struct
import subprocess
import sys

PATTERNS = [0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x8001]


def value(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def compile_ir(lanes, operation, through_float):
    half = f"<{lanes} x half>" if lanes > 1 else "half"
    real = f"<{lanes} x float>" if lanes > 1 else "float"
    kind = (f"v{lanes}" if lanes > 1 else "") + ("f32" if through_float else "f16")
    if through_float:
        body = [f"%xf = fpext {half} %x to {real}", f"%yf = fpext {half} %y to {real}",
                f"%zf = call {real} @llvm.{operation}.{kind}({real} %xf, {real} %yf)", f"%z = fptrunc {real} %zf to {half}"]
    else:
        body = [f"%z = call {half} @llvm.{operation}.{kind}({half} %x, {half} %y)"]
    lines = [f"%x = load {half}, ptr %a, align 2", f"%y = load {half}, ptr %b, align 2", *body,
             f"store {half} %z, ptr %c, align 2", "ret void"]
    name = f"{operation}_{lanes}_{through_float}"
    with open(f"{name}.ll", "w", encoding="utf-8") as file:
        file.write("define void @f(ptr %a, ptr %b, ptr %c) {\n  " + "\n  ".join(lines) + "\n}\n")
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu", "-mcpu=haswell", "-O2", "-Wno-override-module",
                    "-shared", f"{name}.ll", "-o", f"{name}.so"], check=True)
    return ctypes.CDLL(f"./{name}.so").f


def wrong(lanes, operation, through_float):
    """The pairs whose result is no NaN though an operand is one, or is not the larger or smaller of the two."""
    function, found = compile_ir(lanes, operation, through_float), []
    for x, y in itertools.product(PATTERNS, repeat=2):
        a, b, c = (ctypes.c_uint16 * lanes)(*[x] * lanes), (ctypes.c_uint16 * lanes)(*[y] * lanes), (ctypes.c_uint16 * lanes)()
        function(a, b, c)
        p, q = value(x), value(y)
        if p != p or q != q:
            good = all(value(z) != value(z) for z in c)
        else:
            order = sorted((p, q), key=lambda number: (number, not str(number).startswith("-")))
            good = all(str(value(z)) == str(order[operation == "maximum"]) for z in c)
        if not good:
            found.append(f"({p}, {q}) = {value(c[0])}")
    return ", ".join(found) or "all right"


version = subprocess.run([sys.executable, "-m", "ziglang", "cc", "--version"], check=True, capture_output=True, text=True).stdout
print("LLVM", re.search(r"clang version (\S+)", version)[1])
for operation in ("maximum", "minimum"):
    for lanes, through_float in ((1, False), (16, False), (16, True)):
        kind = "one half" if lanes == 1 else f"{lanes} halves"
        print(f"{operation} of {kind}{' by way of float' if through_float else ''}:", wrong(lanes, operation, through_float))
PYTHON

grep -qw f16c /proc/cpuinfo || { echo "this processor has no F16C"; exit 1; }
cd "$folder"
for version in 0.14.1 0.15.2; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "ziglang==$version"
  "$folder/$version/bin/python" "$folder/maximum.py"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
LLVM 19.1.7
maximum of one half: all right
maximum of 16 halves: (0.0, nan) = 0.0, (nan, 0.0) = 0.0
maximum of 16 halves by way of float: (0.0, nan) = 0.0, (nan, 0.0) = 0.0
minimum of one half: all right
minimum of 16 halves: (-0.0, nan) = -0.0, (nan, -0.0) = -0.0
minimum of 16 halves by way of float: (-0.0, nan) = -0.0, (nan, -0.0) = -0.0
LLVM 20.1.2
maximum of one half: all right
maximum of 16 halves: all right
maximum of 16 halves by way of float: all right
minimum of one half: all right
minimum of 16 halves: all right
minimum of 16 halves by way of float: all right
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
