// Programs whose cost is a known function of their rows, which a model should find.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/numbers/rng.h"
#include "costmodel/cost_model.h"
#include "costmodel/rank_correlation.h"

namespace kiln::costmodel {

// Returns a program like real ones: a third of the columns is zero in all programs, most other
// columns have few values (logarithms of extents), and one row in three is shared by many programs.
inline FloatMatrix SyntheticProgram(Rng& rng, int columns = 200, int min_rows = 2,
                                    int max_rows = 12) {
  const int rows = static_cast<int>(UniformIn(rng, min_rows, max_rows));
  FloatMatrix program(columns);
  for (int r = 0; r < rows; ++r) {
    const std::span<float> row = program.AddRow();
    Rng shared(static_cast<uint64_t>(UniformInt(rng, 8)));
    Rng& source = r % 3 == 0 ? shared : rng;
    for (int c = 0; c < columns; ++c) {
      const int64_t draw = UniformInt(source, c % 5 == 0 ? 4096 : 12);
      if (c % 3 == 1) continue;
      row[c] = c % 5 == 0 ? std::log2(1 + static_cast<float>(draw)) : static_cast<float>(draw);
    }
  }
  return program;
}

// Returns seconds: the sum over rows of a function with thresholds, products and a smooth part.
inline double SyntheticCost(const FloatMatrix& program) {
  double cost = 0;
  for (int r = 0; r < program.rows(); ++r) {
    const std::span<const float> row = program.row(r);
    cost += 0.2 + (row[0] > 8 ? 1.0 : 0.2) + (row[2] < 3 && row[3] > 5 ? 1.5 : 0) +
            0.1 * std::abs(row[5] - 6) + 0.05 * row[6];
  }
  return cost * 1e-5;
}

inline std::vector<Sample> SyntheticSamples(Rng& rng, int count, uint64_t task = 1,
                                            double scale = 1) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    auto rows = std::make_shared<const FloatMatrix>(SyntheticProgram(rng));
    const double cost = SyntheticCost(*rows) * scale;
    samples.push_back({.rows = std::move(rows), .task = task, .cost_s = cost});
  }
  return samples;
}

inline std::vector<const FloatMatrix*> Programs(const std::vector<Sample>& samples) {
  std::vector<const FloatMatrix*> programs;
  for (const Sample& sample : samples) programs.push_back(sample.rows.get());
  return programs;
}

// Returns the rank correlation of the model's scores with the true throughputs.
inline double RankQuality(const CostModel& model, const std::vector<Sample>& samples) {
  std::vector<double> throughputs;
  for (const Sample& sample : samples) throughputs.push_back(1 / sample.cost_s.value());
  return Spearman(model.Predict(Programs(samples)), throughputs);
}

}  // namespace kiln::costmodel
