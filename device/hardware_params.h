// The parameters of a device's hardware that schedules depend on. This is the one list of them: the
// compiler's values, the wire's message (rpc/hardware_message.h) and the store's rows all follow
// it. It is in device/ because no two of those three see each other.
//
// To add a parameter, add a line at the end of the table here and one in proto/tracker.proto. Tests
// then ask for the parameter where devices are read (runner/cuda_gpus.cc,
// runner/cpu_description.cc), and where a target stands for a device (DefaultHardware of
// compiler/target/target.cc). store/measure_log.cc does not compile then, because rows of the
// database and lines of logs have a fixed number of parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln {

// X(type, name, value when nothing is known), in the order of a measure-record line. Cores are -1
// for a GPU; 0 means not known.
#define KILN_HARDWARE_PARAMS(X)                    \
  X(int32_t, num_cores, 0)                         \
  X(int32_t, vector_unit_bytes, 64)                \
  X(int32_t, cache_line_bytes, 64)                 \
  X(int64_t, max_shared_memory_per_block_bytes, 0) \
  X(int64_t, max_local_memory_per_block_bytes, 0)  \
  X(int32_t, max_threads_per_block, 0)             \
  X(int32_t, max_vthread_extent, 0)                \
  X(int32_t, warp_size, 0)

struct HardwareParams {
#define KILN_MEMBER(type, name, value) type name = value;
  KILN_HARDWARE_PARAMS(KILN_MEMBER)
#undef KILN_MEMBER
  bool operator==(const HardwareParams&) const = default;
};

#define KILN_COUNT(type, name, value) +1
inline constexpr size_t kNumHardwareParams = 0 KILN_HARDWARE_PARAMS(KILN_COUNT);
#undef KILN_COUNT

// The parameters as plain numbers in the order of the table. Stored rows may hold any numbers.
using HardwareRow = std::array<int64_t, kNumHardwareParams>;

constexpr HardwareRow HardwareRowOf(const HardwareParams& params) {
#define KILN_NUMBER(type, name, value) params.name,
  return {KILN_HARDWARE_PARAMS(KILN_NUMBER)};
#undef KILN_NUMBER
}

constexpr HardwareParams HardwareParamsOf(const HardwareRow& row) {
  HardwareParams params;
  size_t i = 0;
#define KILN_TAKE(type, name, value) params.name = static_cast<type>(row[i++]);
  KILN_HARDWARE_PARAMS(KILN_TAKE)
#undef KILN_TAKE
  return params;
}

// Returns the parameters of `measured` that are known (more than 0), and the others of `assumed`.
constexpr HardwareParams KnownOr(const HardwareParams& measured, const HardwareParams& assumed) {
  const HardwareRow known = HardwareRowOf(measured);
  HardwareRow row = HardwareRowOf(assumed);
  for (size_t i = 0; i < row.size(); ++i) {
    if (known[i] > 0) row[i] = known[i];
  }
  return HardwareParamsOf(row);
}

}  // namespace kiln
