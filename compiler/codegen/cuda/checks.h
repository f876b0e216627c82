// Checks whether a GPU can run a program, before any code is generated. A program that passes
// launches, and does not hang at a barrier.
//
// InvalidArgument names the kernel, what it needs, what there is, and what to change.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// Launch: threads of a block (in all, and 1024, 1024, 64 by axis), blocks of the grid by axis,
// parameters. Memory: shared bytes (max_shared_memory_per_block_bytes: 48 KiB, or what the device
// lets a kernel opt into), bytes of local buffers per thread (also the 512 KiB every GPU ends at).
// Barriers: only where all threads of a block arrive. The structure itself is ir::Verify's matter,
// which the generator asks. Search space: extent of virtual thread loops, in all loops around one
// another. Limits that are 0 in `hardware` are not checked. Vectors of any length are cut to what a
// thread can access at once, so they are never refused. Clusters: 2, 4 or 8 blocks, which every GPU
// that has them can have together. The target, if it is of a GPU: CheckCudaTarget.
Status CheckCudaProgram(const ir::Program& program, const target::HardwareParams& hardware,
                        const target::Target& target = {});
// Has the architecture, where the target names one, clusters and matrix units that the program uses,
// and may they round as they do?
Status CheckCudaTarget(const ir::Program& program, const target::Target& target);

}  // namespace kiln::codegen
