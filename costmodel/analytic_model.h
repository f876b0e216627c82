// A cost model that has nothing to learn: estimates the time of a program from its feature rows.
//
// For each kernel the busiest multiprocessor (core) counts: what its units must do (issue
// instructions, move shared and global memory: a roofline), what a warp needs for its own part
// however idle the units are, how far blocks that run together hide the latency of each other's
// loads and barriers, how many rounds of blocks there are; then the launch. On a CPU: vector
// instructions, loads, sums that wait for themselves, lines that come from each cache, parallel
// tasks against cores.
//
// Good for an order before the first measurement, not for times. A row's score is minus its share
// of the estimated seconds.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost_model.h"

namespace kiln::costmodel {

// Of the measured device. The defaults for a GPU are fitted to 25,000 programs of 18 workloads
// measured on an H200 (docs/cost-models.md), so they hold what the model leaves out, too: they are
// no data sheet. Those for a CPU are of a server.
struct DeviceFacts {
  // GPU; latencies are in cycles
  double clock_hz = 1.7e9;
  double launch_s = 0.45e-6;   // of one more kernel in a row
  double stage_latency = 160;  // of filling shared memory once more
  double barrier_latency = 140;
  double fma_latency = 4.9;          // of sums that wait for themselves
  double l2_bytes_per_cycle = 1250;  // of the whole chip
  double l1_bytes_per_cycle = 16;    // of one multiprocessor
  double wavefront_cycles = 0.625;   // of one request to shared memory, of one multiprocessor
  // What a warp takes even if it is alone: for each instruction, for each pass of a request to
  // shared memory beyond that, for each request to global memory.
  double instruction_latency = 1.14, shared_latency = 0.24, request_latency = 41;
  // So many registers that are missing double the instructions; ever more of them cost no more
  // than spilled_most, for not all are needed at once.
  double spilled_doubling = 26, spilled_most = 126;
  // Blocks of a cluster wait for the slowest of them, and for each other's shared memory.
  double cluster_barrier_latency = 1180, remote_bytes_per_cycle = 16;
  // CPU
  double cpu_clock_hz = 3e9;
  double fork_s = 3e-6;  // of one parallel loop
  double line_cycles_l2 = 4, line_cycles_l3 = 14, line_cycles_memory = 45;
};

class AnalyticModel final : public CostModel {
 public:
  // Refuses columns among which one that it needs is missing.
  static StatusOr<std::unique_ptr<AnalyticModel>> Make(std::span<const std::string_view> columns,
                                                       const DeviceFacts& device = {});

  // Those that it needs.
  static std::span<const std::string_view> Columns();

  std::string_view name() const override { return "analytic"; }
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return std::string(name()); }
  Status Load(std::string_view bytes) override;

 private:
  explicit AnalyticModel(const DeviceFacts& device) : device_(device) {}

  // Rows of one kernel: seconds of each.
  void GpuKernel(const FloatMatrix& rows, int begin, int end, std::span<double> seconds) const;
  void CpuKernel(const FloatMatrix& rows, int begin, int end, std::span<double> seconds) const;

  const DeviceFacts device_;
  int num_columns_ = 0;
  std::vector<int> column_;  // by Column in the .cc
};

}  // namespace kiln::costmodel
