// A device model: the facts that a runner knows about the device that it measures on. Sampling,
// features and the analytic cost model use it, and records keep it.
//
// A value. It is announced as a message (rpc/device_message.h) and stored as a text (below); both
// follow the one table of numbers here. 0 means that the device does not report the number, or that
// a device of this kind has no such thing. FilledGpu() replaces numbers that are not reported by
// usual ones.
//
// To add a number, add a line at the end of the table here, one in proto/tracker.proto, and one
// where devices are read (runner/gpu_model.cc, runner/cpu_description.cc). Texts without the number
// can still be parsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// X(type, name, largest plausible value). The driver reports the numbers of a GPU once, when a
// runner starts.
// clang-format off
#define KILN_DEVICE_NUMBERS(X)                                                        \
  /* GPU. 90 stands for capability 9.0; 0 means no GPU */                             \
  X(int32_t, compute_capability, 999)                                                 \
  X(int32_t, multiprocessors, 16384)                                                  \
  /* The highest clock; the GPU sustains less */                                      \
  X(int32_t, clock_mhz, 100000)                                                       \
  X(int32_t, memory_clock_mhz, 100000)                                                \
  X(int32_t, memory_bus_bits, 1 << 20)                                                \
  X(int64_t, memory_bytes, int64_t{1} << 50)                                          \
  X(int64_t, l2_bytes, int64_t{1} << 40)                                              \
  /* Figures of one multiprocessor */                                                 \
  X(int32_t, registers_per_multiprocessor, 1 << 24)                                   \
  X(int64_t, shared_bytes_per_multiprocessor, int64_t{1} << 30)                       \
  X(int32_t, threads_per_multiprocessor, 1 << 20)                                     \
  X(int32_t, blocks_per_multiprocessor, 1 << 20)                                      \
  /* Figures of one block; the system reserves a part of its shared memory */         \
  X(int32_t, registers_per_block, 1 << 24)                                            \
  X(int64_t, shared_bytes_per_block, int64_t{1} << 30)                                \
  X(int64_t, opt_in_shared_bytes_per_block, int64_t{1} << 30)                         \
  X(int64_t, reserved_shared_bytes_per_block, int64_t{1} << 30)                       \
  X(int32_t, threads_per_block, 1 << 20)                                              \
  X(int32_t, warp_size, 1024)                                                         \
  /* Blocks of the largest cluster; 1: the GPU has no clusters */                     \
  X(int32_t, max_cluster_blocks, 1024)                                                \
  /* Number of multiprocessors that have a block, at one each, when as many           \
     clusters of this size as possible are resident */                                \
  X(int32_t, multiprocessors_in_clusters_of_2, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_4, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_8, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_16, 16384)                                \
  /* CPU, for which l2_bytes and clock_mhz (measured under load) are set too */       \
  X(int32_t, cores, 16384)                                                            \
  X(int32_t, vector_bytes, 4096)                                                      \
  X(int64_t, l1_bytes, int64_t{1} << 40)                                              \
  X(int64_t, l3_bytes, int64_t{1} << 40)                                              \
  /* Measured on independent float32 multiply-adds, of two operations each */         \
  X(int32_t, gflops_per_core, 1000000)
// clang-format on

struct DeviceModel {
  // "NVIDIA H200"
  std::string name = {};
#define KILN_MEMBER(type, number, largest) type number = 0;
  KILN_DEVICE_NUMBERS(KILN_MEMBER)
#undef KILN_MEMBER
  bool operator==(const DeviceModel&) const = default;

  // Only CUDA devices have a compute capability.
  bool is_gpu() const { return multiprocessors > 0 || compute_capability > 0; }
};

// Refuses numbers that no device has, numbers that contradict each other, and names that are empty,
// too long or not printable: InvalidArgument "device model: multiprocessors is -3, expected 0 to
// 16384".
Status CheckDeviceModel(const DeviceModel& model);

// Prints "compute_capability=90 multiprocessors=132 ... name=NVIDIA H200": the numbers in the order
// of the table, without those that are 0. Parsing gives the same value back. It refuses models that
// CheckDeviceModel refuses, and names that are not in the table.
std::string PrintDeviceModel(const DeviceModel& model);
StatusOr<DeviceModel> ParseDeviceModel(std::string_view text);

// Returns text for people: "132 multiprocessors at 1980 MHz, L2 60.0 MiB, memory 4916 GB/s, ...".
std::string DeviceSummary(const DeviceModel& model);

// Returns a usual GPU of this compute capability: its limits are from the CUDA C++ Programming
// Guide ("Technical Specifications per Compute Capability"), its sizes from the data sheet of a
// common device. A capability that is not known has the figures of the one before it.
DeviceModel UsualGpu(int compute_capability);

// Replaces numbers that a GPU does not report by those of the usual GPU of its capability. If the
// capability is not reported either, `otherwise` counts (0: 90). A CPU is left as it is.
DeviceModel FilledGpu(DeviceModel model, int otherwise);

// Returns the bytes per second between the GPU and its memory, from clock and bus: both edges of
// the clock move data. 0: not known.
double MemoryBandwidth(const DeviceModel& model);

// Returns how many multiprocessors can be filled by blocks of clusters of this size; all of them
// for size 1. Sizes between those of the table count as the next larger size. At least 1.
double MultiprocessorsForClusters(const DeviceModel& model, int64_t cluster);

// Returns the float32 multiply-adds that one multiprocessor begins in a cycle, from the CUDA C++
// Programming Guide's table of arithmetic throughput.
int Fp32Lanes(int compute_capability);

// Returns the kinds of matrix units that the capability implies, by name: "wmma fp16", "mma tf32",
// "wgmma".
std::vector<std::string_view> MatrixUnits(const DeviceModel& model);

}  // namespace kiln::device
