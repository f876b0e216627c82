// Computes how many blocks a multiprocessor of a CUDA device holds at once. Devices must be filled
// ones (device::FilledGpu).
#pragma once

#include <cstdint>

#include "device/device_model.h"

namespace kiln::features {

// Returns the registers that the compiler may give a thread, so that `min_blocks` blocks of this
// size (0: one) are resident at once. A block has at most the device's registers_per_block.
int64_t RegisterLimit(const device::DeviceModel& device, int64_t threads, int64_t min_blocks);

// Registers are allocated to warps in units of 256. The result is at least 1: a block that cannot
// run is never proposed.
int64_t ResidentBlocks(const device::DeviceModel& device, int64_t threads,
                       int64_t registers_per_thread, int64_t shared_bytes);

}  // namespace kiln::features
