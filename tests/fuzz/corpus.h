// Valid inputs to begin with: the operator library on small shapes, random schedules of it, and
// the lines of a log of it.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"

namespace kiln::fuzz {

struct Seed {
  std::string op;     // "matmul 5,7,3"
  std::string text;   // its computation in the text form
  std::string steps;  // of a schedule of it for a CPU, as JSON
  std::string line;   // a measure log's, of both, with its line feed
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
