#include "runner/cuda_kernels.h"

namespace kiln::runner {
namespace {

constexpr char kPtx[] =
#include "runner/cuda_kernels.ptx.inc"
    ;

}  // namespace

const char* CudaKernelsPtx() { return kPtx; }

}  // namespace kiln::runner
