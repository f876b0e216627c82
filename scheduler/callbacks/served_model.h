// The cost model of one task, which the user's process serves.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/cost_model.h"
#include "scheduler/callbacks/served_search.h"

namespace kiln::scheduler {

// Thread-safe. One call for each Predict and Update, or several for more than 64 MiB of rows and
// steps. A prediction must have one score for each program: a finite number, or minus infinity for
// a program that should not be measured.
class ServedModel final : public costmodel::CostModel {
 public:
  // `analytic` estimates the rows that the model reads (ServedSearch::Model).
  ServedModel(ServedSearch& search, int task, std::shared_ptr<const costmodel::CostModel> analytic)
      : search_(search), task_(task), analytic_(std::move(analytic)) {}

  std::string_view name() const override { return "served"; }
  Status Update(std::vector<costmodel::Sample> samples) override;
  // Fails the search if the model reads steps.
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override;
  bool reads_steps() const override { return search_.served().model_reads_steps(); }
  std::vector<double> PredictSchedules(std::span<const FloatMatrix* const> programs,
                                       std::span<const std::string> steps) const override;
  // The process scores whole programs, so all rows of a program have its score. Fails the search
  // if the model reads steps.
  std::vector<double> PredictRows(const FloatMatrix& program) const override;
  // The model has learned once it was told results. It can rank before.
  bool trained() const override { return is_told_; }
  // The process keeps its model itself.
  StatusOr<std::string> Save() const override;
  Status Load(std::string_view bytes) override;

 private:
  // Returns the bytes of a program in a call. `steps` may be null if the model reads none.
  size_t BytesOf(const FloatMatrix& rows, const std::string* steps) const;
  // Adds the rows of a program, and their estimates.
  void AddRows(const FloatMatrix& program, v1::FeatureRows& to) const;
  uint32_t NumberOf(const costmodel::Sample& sample);

  ServedSearch& search_;
  const int task_;
  const std::shared_ptr<const costmodel::CostModel> analytic_;
  std::atomic<bool> is_told_ = false;
  std::mutex mutex_;
  uint32_t told_ = 0;                     // number of samples that were told, without corrections
  std::map<uint64_t, uint32_t> numbers_;  // of samples, by their ids
};

}  // namespace kiln::scheduler
