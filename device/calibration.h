// What the analytic cost model takes a device for: rates and latencies that no driver says.
//
// A row is one device's. Those that are built in were fitted to programs measured on that device,
// so they hold what the model leaves out, too: they are no data sheet. A device without a row has
// one derived from its model's numbers, until `kiln calibrate` has fitted one, which the scheduler
// keeps (store::CalibrationRow).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device/device_model.h"

namespace kiln::device {

// X(name, value), the values being the row of an NVIDIA H200, fitted to 25,000 programs of 18
// workloads (docs/cost-models.md), and of a server's CPU core. Latencies are in cycles.
// clang-format off
#define KILN_CALIBRATION(X)                                                                  \
  /* GPU: the clock it keeps up; what one more kernel in a row takes */                      \
  X(clock_hz, 1.7e9)                                                                         \
  X(launch_s, 0.45e-6)                                                                       \
  /* Of filling shared memory once more; of a barrier; of sums that wait for themselves */   \
  X(stage_latency, 160)                                                                      \
  X(barrier_latency, 140)                                                                    \
  X(fma_latency, 4.9)                                                                        \
  /* Of the whole chip; of one multiprocessor; of one request to shared memory */            \
  X(l2_bytes_per_cycle, 1250)                                                                \
  X(l1_bytes_per_cycle, 16)                                                                  \
  X(wavefront_cycles, 0.625)                                                                 \
  /* Between two instructions of a warp that one of the four schedulers issues */            \
  X(issue_cycles, 1)                                                                         \
  /* What a warp takes even if it is alone: for each instruction, for each pass of a request \
     to shared memory beyond that, for each request to global memory */                      \
  X(instruction_latency, 1.14)                                                               \
  X(shared_latency, 0.24)                                                                    \
  X(request_latency, 41)                                                                     \
  /* So many registers that are missing double the instructions; ever more of them cost no   \
     more than spilled_most, for not all are needed at once */                               \
  X(spilled_doubling, 26)                                                                    \
  X(spilled_most, 126)                                                                       \
  /* Blocks of a cluster wait for the slowest of them, and for each other's shared memory */ \
  X(cluster_barrier_latency, 1180)                                                           \
  X(remote_bytes_per_cycle, 16)                                                              \
  /* CPU; one parallel loop; lines of 64 bytes from the next caches */                       \
  X(cpu_clock_hz, 3e9)                                                                       \
  X(fork_s, 3e-6)                                                                            \
  X(line_cycles_l2, 4)                                                                       \
  X(line_cycles_l3, 14)                                                                      \
  X(line_cycles_memory, 45)                                                                  \
  /* Vector instructions that begin in a cycle, and memory accesses: two ports for either in \
     cores since Haswell and Zen 2, of which stores have one, so fewer than two. A sum waits \
     for the multiply-add before it, 4 cycles since Skylake and Zen. A division or a         \
     transcendental takes a vector about 20 cycles (tables of instruction latencies by       \
     A. Fog; assumed, not fitted) */                                                         \
  X(cpu_instructions_per_cycle, 2)                                                           \
  X(cpu_accesses_per_cycle, 1.5)                                                             \
  X(cpu_fma_latency, 4)                                                                      \
  X(cpu_special_cycles, 20)
// clang-format on

struct Calibration {
#define KILN_MEMBER(number, value) double number = value;
  KILN_CALIBRATION(KILN_MEMBER)
#undef KILN_MEMBER
  bool operator==(const Calibration&) const = default;
};

// "clock_hz=1.7e+09 launch_s=4.5e-07 ...", in the order of the table; parsing gives the same value
// back. Refused: names that are not in the table, numbers that are not positive and finite. One
// that is left out has the table's value.
std::string PrintCalibration(const Calibration& calibration);
StatusOr<Calibration> ParseCalibration(std::string_view text);

// The same with the names of those that a fit of this kind of device may change.
struct CalibrationField {
  std::string_view name;
  double Calibration::* field;
};
std::span<const CalibrationField> FittedFields(bool gpu);

enum class CalibrationSource : uint8_t {
  kBuiltIn,   // fitted on a device of this name
  kDerived,   // from its model's numbers
  kMeasured,  // by kiln calibrate
};

struct KnownCalibration {
  Calibration row = {};
  CalibrationSource source = CalibrationSource::kBuiltIn;
};

// The built-in row of the device's name and capability, or one derived from its numbers. Of a GPU
// derived from the H200's: the clock in proportion to the device's highest, the L2's bytes per
// cycle to the number of multiprocessors (its slices grow with them), the cycles between
// instructions by its float32 lanes; latencies in cycles hardly differ since Volta and stay. Of a
// CPU: its clock.
KnownCalibration CalibrationOf(const DeviceModel& model);

// For people: "the analytic model's constants are derived from the device's own numbers; ...".
std::string CalibrationNote(CalibrationSource source);

}  // namespace kiln::device
