// The analytic cost model's constants of a device: rates and latencies that no driver reports.
//
// A row belongs to one device. The built-in rows were fitted to programs measured on the device, so
// they also make up for what the model leaves out: they are no data sheet. A device without a row
// gets one that is derived from its model's numbers. Once `kiln calibrate` has fitted a row, the
// scheduler keeps that row (store::CalibrationRow).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device/device_model.h"

namespace kiln::device {

// X(name, value). The values are the row of an NVIDIA H200, fitted to 25,000 programs of 18
// workloads (docs/cost-models.md), and of a server's CPU core. Latencies are in cycles.
// clang-format off
#define KILN_CALIBRATION(X)                                                                  \
  /* GPU: the clock that it sustains, and the time of one more kernel in a row */            \
  X(clock_hz, 1.7e9)                                                                         \
  X(launch_s, 0.45e-6)                                                                       \
  /* Latencies of filling shared memory once more, of a barrier, and of a chain of sums */   \
  X(stage_latency, 160)                                                                      \
  X(barrier_latency, 140)                                                                    \
  X(fma_latency, 4.9)                                                                        \
  /* The whole chip, one multiprocessor, and one request to shared memory */                 \
  X(l2_bytes_per_cycle, 1250)                                                                \
  X(l1_bytes_per_cycle, 16)                                                                  \
  X(wavefront_cycles, 0.625)                                                                 \
  /* Cycles between two warp instructions that one of the four schedulers issues */          \
  X(issue_cycles, 1)                                                                         \
  /* Cycles that a warp takes even alone: for each instruction, for each further pass of a   \
     request to shared memory, and for each request to global memory */                      \
  X(instruction_latency, 1.14)                                                               \
  X(shared_latency, 0.24)                                                                    \
  X(request_latency, 41)                                                                     \
  /* This number of missing registers doubles the instructions. The number that counts       \
     approaches spilled_most, because not all registers are needed at once */                \
  X(spilled_doubling, 26)                                                                    \
  X(spilled_most, 126)                                                                       \
  /* Blocks of a cluster wait for the slowest block, and for each other's shared memory */   \
  X(cluster_barrier_latency, 1180)                                                           \
  X(remote_bytes_per_cycle, 16)                                                              \
  /* CPU: its clock, one parallel loop, and lines of 64 bytes from the next caches */        \
  X(cpu_clock_hz, 3e9)                                                                       \
  X(fork_s, 3e-6)                                                                            \
  X(line_cycles_l2, 4)                                                                       \
  X(line_cycles_l3, 14)                                                                      \
  X(line_cycles_memory, 45)                                                                  \
  /* Vector instructions and memory accesses that begin in a cycle. Cores since Haswell and  \
     Zen 2 have two ports for each; stores can use one, so there are fewer than two accesses.\
     A sum waits for the multiply-add before it, 4 cycles since Skylake and Zen. A division  \
     or a transcendental takes a vector about 20 cycles (tables of instruction latencies by  \
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

// Prints "clock_hz=1.7e+09 launch_s=4.5e-07 ...", in the order of the table; parsing gives the same
// value back. Parsing refuses names that are not in the table, and numbers that are not positive
// and finite. A constant that is left out has the table's value.
std::string PrintCalibration(const Calibration& calibration);
StatusOr<Calibration> ParseCalibration(std::string_view text);

// The constants that a fit for this kind of device may change, with their names.
struct CalibrationField {
  std::string_view name;
  double Calibration::* field;
};
std::span<const CalibrationField> FittedFields(bool gpu);

enum class CalibrationSource : uint8_t {
  // Fitted on a device of this name.
  kBuiltIn,
  // Derived from the numbers of the device's model.
  kDerived,
  // Fitted by kiln calibrate.
  kMeasured,
};

struct KnownCalibration {
  Calibration row = {};
  CalibrationSource source = CalibrationSource::kBuiltIn;
};

// Returns the built-in row of the device's name and capability, or one derived from its numbers. A
// GPU's row is derived from the H200's. Its clock is in proportion to the device's highest clock,
// the L2's bytes per cycle to the number of multiprocessors (its slices grow with them), and the
// cycles between instructions follow from its float32 lanes. Latencies in cycles have hardly
// changed since Volta, so they stay. A CPU's row has the CPU's clock.
KnownCalibration CalibrationOf(const DeviceModel& model);

// Returns text for people: "the analytic model's constants are derived from the device's own
// numbers; ...".
std::string CalibrationNote(CalibrationSource source);

}  // namespace kiln::device
