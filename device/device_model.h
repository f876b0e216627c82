// A device model: what a runner knows of the device that it measures on. Sampling, features and the
// analytic cost model choose by it, records keep it.
//
// A value. It is announced as a message (rpc/device_message.h) and stored as a text (below): both
// follow the one table of its numbers here. 0 is "the device does not say", or "a device of this
// kind has none": Filled() puts what is usual in place of the former.
//
// A further number is a line at the end of the table here, one in proto/tracker.proto, and one
// where devices are read (runner/cuda_gpus.cc, runner/cpu_description.cc). Texts without it still
// parse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// X(type, name, largest that is believed). GPU: what the driver says, asked once when a runner
// starts.
// clang-format off
#define KILN_DEVICE_NUMBERS(X)                                                        \
  /* GPU. 90 stands for 9.0; 0 is no GPU */                                           \
  X(int32_t, compute_capability, 999)                                                 \
  X(int32_t, multiprocessors, 16384)                                                  \
  /* The highest that it runs at; what it keeps up is less */                         \
  X(int32_t, clock_mhz, 100000)                                                       \
  X(int32_t, memory_clock_mhz, 100000)                                                \
  X(int32_t, memory_bus_bits, 1 << 20)                                                \
  X(int64_t, memory_bytes, int64_t{1} << 50)                                          \
  X(int64_t, l2_bytes, int64_t{1} << 40)                                              \
  /* Of one multiprocessor */                                                         \
  X(int32_t, registers_per_multiprocessor, 1 << 24)                                   \
  X(int64_t, shared_bytes_per_multiprocessor, int64_t{1} << 30)                       \
  X(int32_t, threads_per_multiprocessor, 1 << 20)                                     \
  X(int32_t, blocks_per_multiprocessor, 1 << 20)                                      \
  /* Of one block; what the system takes for itself of shared memory */               \
  X(int32_t, registers_per_block, 1 << 24)                                            \
  X(int64_t, shared_bytes_per_block, int64_t{1} << 30)                                \
  X(int64_t, opt_in_shared_bytes_per_block, int64_t{1} << 30)                         \
  X(int64_t, reserved_shared_bytes_per_block, int64_t{1} << 30)                       \
  X(int32_t, threads_per_block, 1 << 20)                                              \
  X(int32_t, warp_size, 1024)                                                         \
  /* Blocks of the largest cluster; 1: it has no clusters */                          \
  X(int32_t, max_cluster_blocks, 1024)                                                \
  /* How many multiprocessors have a block, at one each, when as many                 \
     clusters of this size are resident as can be */                                  \
  X(int32_t, multiprocessors_in_clusters_of_2, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_4, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_8, 16384)                                 \
  X(int32_t, multiprocessors_in_clusters_of_16, 16384)                                \
  /* CPU; l2_bytes and clock_mhz (measured under load) as well */                     \
  X(int32_t, cores, 16384)                                                            \
  X(int32_t, vector_bytes, 4096)                                                      \
  X(int64_t, l1_bytes, int64_t{1} << 40)                                              \
  X(int64_t, l3_bytes, int64_t{1} << 40)                                              \
  /* Of float32 multiply-adds that wait for nothing, two operations each; measured */ \
  X(int32_t, gflops_per_core, 1000000)
// clang-format on

struct DeviceModel {
  std::string name = {};  // "NVIDIA H200"
#define KILN_MEMBER(type, number, largest) type number = 0;
  KILN_DEVICE_NUMBERS(KILN_MEMBER)
#undef KILN_MEMBER
  bool operator==(const DeviceModel&) const = default;

  // Only CUDA's have a compute capability.
  bool is_gpu() const { return multiprocessors > 0 || compute_capability > 0; }
};

// InvalidArgument "device model: multiprocessors is -3, expected 0 to 16384": a number that no
// device has, numbers that contradict each other, or a name that is empty, long or not printable.
Status CheckDeviceModel(const DeviceModel& model);

// "compute_capability=90 multiprocessors=132 ... name=NVIDIA H200": numbers in the order of the
// table, those that are not said left out. Parsing gives the same value back, and refuses what
// CheckDeviceModel does and names that are not in the table.
std::string PrintDeviceModel(const DeviceModel& model);
StatusOr<DeviceModel> ParseDeviceModel(std::string_view text);

// For people: "132 multiprocessors at 1980 MHz, L2 60.0 MiB, memory 4916 GB/s, ...".
std::string DeviceSummary(const DeviceModel& model);

// What a GPU of this compute capability usually is: limits from the CUDA C++ Programming Guide
// ("Technical Specifications per Compute Capability"), sizes from the data sheet of a common device
// of it. A capability that is not known has those of the one before it.
DeviceModel UsualGpu(int compute_capability);

// What a GPU does not say of itself is taken from the usual one of its capability, or of
// `otherwise` where it does not say that either (0: 90). A CPU is left as it is.
DeviceModel FilledGpu(DeviceModel model, int otherwise);

// Bytes per second between the GPU and its memory, from clock and bus: both edges of the clock move
// data. 0: not known.
double MemoryBandwidth(const DeviceModel& model);

// How many multiprocessors blocks of clusters of this size can fill; all of them for size 1. Sizes
// between those of the table count as the next larger one. At least 1.
double MultiprocessorsForClusters(const DeviceModel& model, int64_t cluster);

// float32 multiply-adds that one multiprocessor begins in a cycle: the CUDA C++ Programming Guide's
// table of arithmetic throughput.
int Fp32Lanes(int compute_capability);

// Kinds of matrix units by name, as far as the capability says: "wmma fp16", "mma tf32", "wgmma".
std::vector<std::string_view> MatrixUnits(const DeviceModel& model);

}  // namespace kiln::device
