// How many blocks a multiprocessor of a CUDA device holds at once. Devices are filled ones
// (device::FilledGpu).
#pragma once

#include <cstdint>

#include "device/device_model.h"

namespace kiln::features {

// What the compiler may use of a thread's registers: blocks as large as these must run, and as many
// of them at once as were asked for (0: one).
int64_t RegisterLimit(const device::DeviceModel& device, int64_t threads, int64_t min_blocks);

// Registers are given to warps in units of 256. At least 1, for a block that cannot run is not
// proposed.
int64_t ResidentBlocks(const device::DeviceModel& device, int64_t threads,
                       int64_t registers_per_thread, int64_t shared_bytes);

}  // namespace kiln::features
