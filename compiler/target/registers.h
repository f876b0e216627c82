// Option -registers_per_block of CUDA targets: how many registers the threads of a block may have in
// all. Without it as many as the device has. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/target/target.h"

namespace kiln::target {

inline constexpr std::string_view kRegistersPerBlock = "registers_per_block";
// Of every CUDA device since sm_70.
inline constexpr int64_t kUsualRegistersPerBlock = 65536;
// Fewer a compiled thread does not get along with.
inline constexpr int64_t kLeastRegistersPerThread = 24;

// 0: the target does not say.
int64_t RegistersPerBlock(const Target& target);

// Registers of each of so many threads where the block has so many: warps get them in eights.
int64_t RegistersPerThread(int64_t registers_per_block, int64_t threads);

}  // namespace kiln::target
