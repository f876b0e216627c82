// Valid inputs to begin with: the operator library on small shapes, random schedules of it, and the
// lines of a log of it.
#pragma once

#include <string>
#include <vector>

#include "base/numbers/rng.h"

namespace kiln::fuzz {

struct Seed {
  // Operator and arguments: "matmul 5,7,3".
  std::string op;
  // The operator's computation in the text form.
  std::string text;
  // Steps of a schedule of it for a CPU, as JSON.
  std::string steps;
  // Line of a measure log for both, with its line feed.
  std::string line;
};

class Corpus {
 public:
  Corpus();

  const Seed& Pick(Rng& rng) const { return PickFrom(rng, seeds_); }
  const std::vector<Seed>& seeds() const { return seeds_; }

 private:
  std::vector<Seed> seeds_;
};

}  // namespace kiln::fuzz
