// How many blocks a multiprocessor of a CUDA device holds at once.
#pragma once

#include <cstdint>

#include "compiler/target/target.h"

namespace kiln::features {

// Of one multiprocessor; by architecture, since devices do not say all of it.
struct Multiprocessor {
  int64_t threads = 2048, blocks = 32;
  int64_t registers = 65536;
  int64_t shared_bytes = 228 << 10, reserved_shared_bytes_per_block = 1 << 10;
};
Multiprocessor MultiprocessorOf(const target::Target& target);  // unknown -arch: that of sm_90

// What the compiler may use of a thread's registers: blocks as large as these must run, and as many
// of them at once as were asked for (0: one).
int64_t RegisterLimit(const Multiprocessor& core, int64_t threads, int64_t min_blocks);

// Registers are given to warps in units of 256. At least 1, for a block that cannot run is not
// proposed.
int64_t ResidentBlocks(const Multiprocessor& core, int64_t threads, int64_t registers_per_thread,
                       int64_t shared_bytes);

// Of so many multiprocessors, how many blocks of clusters of this size can fill: a cluster stays
// inside one group of them, and no group is a multiple of every size.
double CoresForClusters(int64_t cores, int64_t cluster);

// Multiprocessors (CPU: cores) of the device; what an unknown GPU is taken to have.
int64_t CoresOf(const target::Target& target, const target::HardwareParams& hardware);

}  // namespace kiln::features
