// What one call of Policy::Propose did: how many candidates it looked at, why it dropped the
// others, and where the time went. For people (--explain) and benchmarks; a plain value.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::search {

enum class Drop : uint8_t {
  kIllegal,       // the steps do not apply: a draw or change that the state refuses
  kThreads,       // too many or too few threads or virtual threads
  kSharedMemory,  // more than a block has
  kDuplicate,     // looked at before in this round
  kKnown,         // proposed or measured before
  kLowering,      // lowering refused it
  kLowScore,      // ranked behind the chosen ones
  kSimilar,       // too many chosen ones with the same tiles
};
inline constexpr int kNumDrops = 8;
std::string_view DropName(Drop drop);  // "too much shared memory"

// Seconds of all threads together.
enum class Part : uint8_t { kSample, kChange, kLower, kFeatures, kPredict, kTrain };
inline constexpr int kNumParts = 6;
std::string_view PartName(Part part);  // "sample", "mutate and replay", ...

struct RoundReport {
  int round = 0;               // calls of Propose so far
  std::string ranked_by = {};  // name of the model; "": chance
  int sketches = 0;
  int64_t sampled = 0;    // random draws that were accepted
  int64_t mutated = 0;    // accepted ones
  int64_t crossed = 0;    // accepted ones
  int64_t evaluated = 0;  // distinct ones lowered and scored
  int proposed = 0;
  int proposed_by_chance = 0;
  int proposed_near_elites = 0;  // one change away, whatever the model says
  std::array<int64_t, kNumDrops> dropped = {};
  std::array<std::string, kNumDrops> drop_examples = {};  // one message for each kind that has one
  double best_score = 0, median_score = 0;                // of the last generation
  std::array<double, kNumParts> part_s = {};
  double wall_s = 0;

  void AddDrop(Drop drop, const Status& reason);  // and keeps the first reason as the example
  int64_t& count(Drop drop) { return dropped[static_cast<int>(drop)]; }
  double& seconds(Part part) { return part_s[static_cast<int>(part)]; }
};

// A few lines: counts, drops with examples, seconds.
std::string PrintRound(const RoundReport& report);

}  // namespace kiln::search
