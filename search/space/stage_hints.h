// How a search chooses stage hints (compiler/ir/hints.h): a row for each says which stages get one,
// which values are worth trying, and how often one is drawn and changed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::search {

// What the values that are worth trying depend on.
struct HintQuestion {
  bool gpu = false;
  int32_t current = 0;                           // the value there is; of a fresh draw 0
  std::function<int64_t()> threads_per_block{};  // GPU
  bool has_warpgroup_units = false;
  int32_t multiprocessors = 0;  // of the device; 0: not known
  bool is_online = false;       // of an online softmax
};

struct HintChoice {
  ir::Hint hint;
  // The search parameter that leaves the hint out when it is 0; empty: there is none.
  std::string_view parameter;
  // What a mutation of it is called, and its weight among the mutations of each target.
  std::string_view mutation;
  double cpu_weight = 0, gpu_weight = 0;
  // How likely a sample draws one of the values; else it is 0.
  double probability = 1;
  // The stages that get a step, ascending. The extents of the state are filled where the hint is
  // one of GPUs only: those are drawn last.
  std::vector<int> (*stages)(const schedule::State& state);
  // Never empty; equal questions, equal lists.
  std::vector<int32_t> (*values)(const HintQuestion& question);
};

// In the order in which steps are drawn: that of ir::kHints.
std::span<const HintChoice> HintChoices();

int32_t DrawHint(const HintChoice& choice, const HintQuestion& question, Rng& rng);

// A step for every stage that has a use for one of the hints that only GPUs have, where
// `wanted[hint]` says so. The extents must be filled.
Status AnnotateGpuHints(schedule::State& state, std::span<const bool, ir::kNumHints> wanted,
                        int32_t multiprocessors, Rng& rng);

}  // namespace kiln::search
