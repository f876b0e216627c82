// Option -registers_per_block of CUDA targets: how many registers the threads of a block may have
// in all. Without the option they may have as many as the device has. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/target/target.h"

namespace kiln::target {

inline constexpr std::string_view kRegistersPerBlock = "registers_per_block";
// Registers per block of every CUDA device since sm_70.
inline constexpr int64_t kUsualRegistersPerBlock = 65536;
// A compiled thread needs at least this many.
inline constexpr int64_t kMinRegistersPerThread = 24;

// Returns 0 if the target does not say.
int64_t RegistersPerBlock(const Target& target);

// Returns the registers of a thread if the block has so many registers and threads. Warps get
// registers in multiples of eight per thread.
int64_t RegistersPerThread(int64_t registers_per_block, int64_t threads);

}  // namespace kiln::target
