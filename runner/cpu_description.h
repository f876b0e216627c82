// The description of this machine's CPU that a runner announces.
#pragma once

#include <string>
#include <string_view>

#include "device/device_model.h"
#include "proto/tracker.pb.h"

namespace kiln::runner {

// Returns "AMD EPYC 9654 96-Core Processor"; "unknown CPU" if /proc/cpuinfo has no name.
std::string CpuModelName();
// Reads a given /proc/cpuinfo instead.
std::string CpuModelNameIn(std::string_view cpuinfo);

// Returns the micro-architecture level of the x86-64 psABI, by CPUID and by the registers that the
// operating system saves: "x86-64", "x86-64-v2", "x86-64-v3" (AVX2, FMA), "x86-64-v4" (AVX-512 F,
// BW, CD, DQ, VL). On other machines it is the machine's name: "aarch64".
std::string CpuLevel();

// The level determines vector_unit_bytes: 64, 32 or 16.
v1::HardwareParams CpuHardware(int threads);

// Returns the device model of the CPU with this many threads. The system reports the caches; clock
// and peak are measured (cpu_speed.h), which takes some 50 ms.
device::DeviceModel CpuDeviceModel(int threads);

// Returns the bytes of the last-level cache that core 0 sees; 32 MiB if the system does not report
// it.
int64_t LastLevelCacheBytes();

}  // namespace kiln::runner
