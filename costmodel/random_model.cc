#include "costmodel/random_model.h"

#include <limits>
#include <numeric>

#include "base/hash/digest.h"
#include "costmodel/saved_model.h"

namespace kiln::costmodel {
namespace {

constexpr std::string_view kKind = "random";

// Draws a number in [0, 1).
double Draw(std::span<const float> row, uint64_t seed) {
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  return static_cast<double>(Xxh3(bytes, seed) >> 11) * 0x1.0p-53;
}

StatusOr<std::unique_ptr<CostModel>> Make(const CostModelOptions& options) {
  if (options.parameters.empty()) return std::make_unique<RandomModel>(options.seed);
  return InvalidArgument("cost model random has no parameter '{}'",
                         options.parameters.begin()->first);
}

}  // namespace

constinit const CostModelKind kRandom = {
    .name = "random", .what = "a hash of rows and seed: what the others must beat", .make = Make};

Status RandomModel::Update(std::vector<Sample>) { return OkStatus(); }

std::vector<double> RandomModel::Predict(std::span<const FloatMatrix* const> programs) const {
  std::vector<double> scores;
  scores.reserve(programs.size());
  for (const FloatMatrix* program : programs) {
    const std::vector<double> rows = PredictRows(*program);
    scores.push_back(rows.empty() ? -std::numeric_limits<double>::infinity()
                                  : std::accumulate(rows.begin(), rows.end(), 0.0));
  }
  return scores;
}

std::vector<double> RandomModel::PredictRows(const FloatMatrix& program) const {
  std::vector<double> scores;
  for (int i = 0; i < program.rows(); ++i) scores.push_back(Draw(program.row(i), seed_));
  return scores;
}

StatusOr<std::string> RandomModel::Save() const {
  return Seal({.kind = std::string(kKind), .body = fmt::to_string(seed_.load())});
}

Status RandomModel::Load(std::string_view bytes) {
  KILN_ASSIGN_OR_RETURN(const SavedModel saved, Unseal(bytes, kKind, 0));
  uint64_t seed = 0;
  for (char c : saved.body) {
    if (c < '0' || c > '9') return DataLoss("a random model's seed is '{}'", saved.body);
    seed = seed * 10 + static_cast<uint64_t>(c - '0');
  }
  seed_ = seed;
  return OkStatus();
}

}  // namespace kiln::costmodel
