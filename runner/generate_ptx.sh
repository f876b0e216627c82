#!/bin/bash
# usage: runner/generate_ptx.sh cuda_kernels.cu > cuda_kernels.ptx
# Compiles the runner's own kernels to PTX that drivers since CUDA 9 accept, for GPUs since sm_70.
# nvcc 13 knows no target below compute_75 and marks its output with its own version, but the
# kernels use no instruction that is newer. With fmad=false the comparison rounds as on the host.
set -euo pipefail
source=$1
root=$(dirname "${BASH_SOURCE[0]}")/..
nvcc=${NVCC:-nvcc}
echo "// Made from cuda_kernels.cu by generate_ptx.sh, nvcc $("$nvcc" --version | sed -n 's/.*, V//p')"
"$nvcc" --ptx -std=c++17 -arch=compute_75 -fmad=false -O3 -I "$root" -o - "$source" |
  sed -e 's/^\.version .*/.version 6.0/' -e 's/^\.target .*/.target sm_70/' -e '/^\/\//d' -e '/^$/d'
