#include "costmodel/build_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace kiln::costmodel {
namespace {

enum Column : int { kAccesses, kSerialTrips, kRegisterBytes, kNumColumns };
constexpr std::string_view kNames[kNumColumns] = {"row_thread_accesses", "row_serial_trips",
                                                  "row_register_bytes"};

// An empty kernel takes so long. A row's share is a power of the accesses to memory that one pass
// through its unrolled loops makes, and of the bytes of its operands and results
// (docs/cost-models.md).
constexpr double kStart_s = 0.03, kAccess_s = 1.1e-3, kAccessPower = 0.75;
constexpr double kRegisterByte_s = 0.75e-3, kRegisterBytePower = 0.5;

}  // namespace

StatusOr<std::unique_ptr<BuildEstimate>> BuildEstimate::Make(
    std::span<const std::string_view> columns) {
  std::vector<int> places;
  for (const std::string_view name : kNames) {
    const auto at = std::ranges::find(columns, name);
    if (at == columns.end()) {
      return InvalidArgument(
          "the estimate of build times needs a column '{}', which is not among {} columns", name,
          columns.size());
    }
    places.push_back(static_cast<int>(at - columns.begin()));
  }
  return std::unique_ptr<BuildEstimate>(
      new BuildEstimate(std::move(places), static_cast<int>(columns.size())));
}

Status BuildEstimate::Load(std::string_view bytes) {
  if (bytes == name()) return OkStatus();
  return InvalidArgument("{} bytes are no saved estimate of build times", bytes.size());
}

std::vector<double> BuildEstimate::PredictRows(const FloatMatrix& program) const {
  std::vector<double> scores(static_cast<size_t>(program.rows()));
  if (scores.empty()) return scores;
  KILN_CHECK(program.columns() == num_columns_, "{} columns, expected {}", program.columns(),
             num_columns_);
  for (int r = 0; r < program.rows(); ++r) {
    const auto value = [&](Column c) {
      const auto column = static_cast<size_t>(columns_[static_cast<size_t>(c)]);
      return std::exp2(static_cast<double>(program.row(r)[column])) - 1;
    };
    const double accesses = value(kAccesses) / std::max(1.0, value(kSerialTrips));
    scores[static_cast<size_t>(r)] =
        -kAccess_s * std::pow(std::max(0.0, accesses), kAccessPower) -
        kRegisterByte_s * std::pow(std::max(0.0, value(kRegisterBytes)), kRegisterBytePower);
  }
  scores[0] -= kStart_s;
  return scores;
}

std::vector<double> BuildEstimate::Predict(std::span<const FloatMatrix* const> programs) const {
  std::vector<double> scores;
  scores.reserve(programs.size());
  for (const FloatMatrix* const program : programs) {
    const std::vector<double> rows = PredictRows(*program);
    scores.push_back(rows.empty() ? -std::numeric_limits<double>::infinity()
                                  : std::accumulate(rows.begin(), rows.end(), 0.0));
  }
  return scores;
}

}  // namespace kiln::costmodel
