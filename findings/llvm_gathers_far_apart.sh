#!/bin/bash
# Finding: for Sapphire Rapids LLVM 19 and 20 read the two halves of a vector's gathers far apart.
#
# A gather of 16 floats from 16 pointers becomes two gathers of 8. In a minimum of 64 such gathers
# the IR reads both halves of one term, then both of the next. With -mcpu=sapphirerapids the machine
# scheduler puts the first halves of all terms in front of the second ones, far from their only use,
# and spills. If the halves of a term lie in the same cache lines and the terms in few sets of the
# cache, each line is fetched twice. With -mcpu=znver4, or without that scheduler
# (-enable-misched=false), the order is that of the IR and nothing is spilled.
#
# The script compiles LLVM IR by the clang of the package ziglang, which bundles LLVM 19.1.7
# (0.14.1) and 20.1.2 (0.15.2), and prints the terms of the first gathers and if there are spills.
#
# Needs: x86-64, python3 with venv, and PyPI. No GPU. Ends with status 0 while the packages behave
# as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/cache"

cat >"$folder/gathers.py" <<'PYTHON'
import re
import subprocess
import sys

TERMS, LANES, STRIDE = 64, 16, 512
FLOATS, POINTERS, MASK = f"<{LANES} x float>", f"<{LANES} x ptr>", f"<{LANES} x i1>"
GATHER = f"{FLOATS} @llvm.masked.gather.v{LANES}f32.v{LANES}p0"


def module(cpu):
    all_lanes = ", ".join(["i1 true"] * LANES)
    lines = []
    for k in range(TERMS):
        lines.append(f"%p{k} = getelementptr i8, {POINTERS} %at, i64 {STRIDE * k}")
        lines.append(f"%x{k} = call {GATHER}({POINTERS} %p{k}, i32 4, {MASK} <{all_lanes}>, {FLOATS} poison)")
        if k > 0:
            before = f"%r{k - 1}" if k > 1 else "%x0"
            lines.append(f"%c{k} = fcmp olt {FLOATS} {before}, %x{k}")
            lines.append(f"%r{k} = select {MASK} %c{k}, {FLOATS} {before}, {FLOATS} %x{k}")
    body = "\n  ".join(lines)
    return f"""declare {GATHER}({POINTERS}, i32, {MASK}, {FLOATS})
define void @f(ptr noalias %in, ptr noalias %out, i64 %n) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr {POINTERS}, ptr %in, i64 %i
  %at = load {POINTERS}, ptr %from
  {body}
  %to = getelementptr {FLOATS}, ptr %out, i64 %i
  store {FLOATS} %r{TERMS - 1}, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" "target-cpu"="{cpu}" }}
"""


def told(cpu, flags):
    with open("gathers.ll", "w", encoding="utf-8") as file:
        file.write(module(cpu))
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu", f"-mcpu={cpu}", "-O3", "-fverbose-asm",
                    "-Wno-override-module", *flags, "-S", "gathers.ll", "-o", "gathers.s"], check=True)
    with open("gathers.s", encoding="utf-8") as file:
        text = file.read()
    gathers = [line for line in text.splitlines() if "vgather" in line]
    terms = [int(re.search(r"\s(\d*)\(", line)[1] or 0) // STRIDE for line in gathers]
    spills = text.count("byte Spill")
    return f"{len(terms)} gathers, terms {' '.join(map(str, terms[:10]))} ..., {'spills' if spills > 8 else 'hardly a spill'}"


version = subprocess.run([sys.executable, "-m", "ziglang", "cc", "--version"], check=True, capture_output=True, text=True).stdout
print("LLVM", re.search(r"clang version (\S+)", version)[1])
print("znver4:", told("znver4", []))
print("sapphirerapids:", told("sapphirerapids", []))
print("sapphirerapids without the machine scheduler:", told("sapphirerapids", ["-mllvm", "-enable-misched=false"]))
PYTHON

cd "$folder"
for version in 0.14.1 0.15.2; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "ziglang==$version"
  "$folder/$version/bin/python" "$folder/gathers.py"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
LLVM 19.1.7
znver4: 128 gathers, terms 0 0 1 1 2 2 3 3 4 4 ..., hardly a spill
sapphirerapids: 128 gathers, terms 0 1 2 3 4 5 6 7 8 9 ..., spills
sapphirerapids without the machine scheduler: 128 gathers, terms 0 0 1 1 2 2 3 3 4 4 ..., hardly a spill
LLVM 20.1.2
znver4: 128 gathers, terms 0 0 1 1 2 2 3 3 4 4 ..., hardly a spill
sapphirerapids: 128 gathers, terms 0 1 2 3 4 5 6 7 8 9 ..., spills
sapphirerapids without the machine scheduler: 128 gathers, terms 0 0 1 1 2 2 3 3 4 4 ..., hardly a spill
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
