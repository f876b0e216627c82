// What this machine's CPU is, as a runner announces it.
#pragma once

#include <string>
#include <string_view>

#include "device/device_model.h"
#include "proto/tracker.pb.h"

namespace kiln::runner {

// "AMD EPYC 9654 96-Core Processor"; "unknown CPU" where /proc/cpuinfo has no name.
std::string CpuModelName();
// The same over a given /proc/cpuinfo.
std::string CpuModelNameIn(std::string_view cpuinfo);

// The micro-architecture level of the x86-64 psABI, by CPUID and what the operating system saves:
// "x86-64", "x86-64-v2", "x86-64-v3" (AVX2, FMA), "x86-64-v4" (AVX-512 F, BW, CD, DQ, VL).
// Elsewhere the machine: "aarch64".
std::string CpuLevel();

// vector_unit_bytes by level: 64, 32 or 16.
v1::HardwareParams CpuHardware(int threads);

// The device model of so many threads of it: caches as the system says, clock and peak measured
// (cpu_speed.h), which takes some 50 ms.
device::DeviceModel CpuDeviceModel(int threads);

// Of the last-level cache that core 0 sees; 32 MiB where the system does not say.
int64_t LastLevelCacheBytes();

}  // namespace kiln::runner
