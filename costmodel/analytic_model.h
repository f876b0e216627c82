// A cost model without training: estimates the time of a program from its feature rows.
//
// The time of a GPU kernel is that of its busiest multiprocessor, plus the launch. It follows from
//   * the throughput of the units: a roofline over instructions, shared memory, global memory;
//   * the latency of one warp, which remains however idle the units are;
//   * occupancy: how far resident blocks hide the latency of each other's loads and barriers;
//   * the number of waves of blocks.
// The time of a CPU kernel follows from vector instructions, loads, the latency of dependent sums,
// cache misses of each level, and the number of parallel tasks for each core.
//
// The estimates order programs before the first measurement; as times they are rough. The score of
// a row is minus its share of the estimated seconds.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cost_model.h"
#include "device/calibration.h"

namespace kiln::costmodel {

class AnalyticModel final : public CostModel {
 public:
  // Makes a model for the device with these constants. Refuses columns that lack one which the
  // model needs.
  static StatusOr<std::unique_ptr<AnalyticModel>> Make(std::span<const std::string_view> columns,
                                                       const device::Calibration& device = {});

  // Returns the columns that the model needs.
  static std::span<const std::string_view> Columns();

  std::string_view name() const override { return "analytic"; }
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return std::string(name()); }
  Status Load(std::string_view bytes) override;

 private:
  explicit AnalyticModel(const device::Calibration& device) : device_(device) {}

  struct BulkCopies;
  BulkCopies BulkCopiesOf(const FloatMatrix& rows, int begin, int end) const;
  struct ProductWork;
  // Collects the work of a product by units of four warps whose tiles come in bulk.
  ProductWork ProductOf(const FloatMatrix& rows, int begin, int end) const;
  static double ProductCycles(const ProductWork& work);
  struct OnlineWork;
  // Returns the cycles of an online softmax by units of four warps.
  double OnlineCycles(const OnlineWork& work) const;
  // Estimates the seconds of each row of one kernel.
  void GpuKernel(const FloatMatrix& rows, int begin, int end, std::span<double> seconds) const;
  void CpuKernel(const FloatMatrix& rows, int begin, int end, std::span<double> seconds) const;

  const device::Calibration device_;
  int num_columns_ = 0;
  std::vector<int> column_;  // index: Column in the .cc file
};

}  // namespace kiln::costmodel
