// The searches of other jobs, as the tuning loop of a job sees them: which of its tasks they tune,
// and what they have found.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "search/policies/policy.h"

namespace kiln::search {

enum class TunedBy {
  kThisSearch,
  kOthers,  // the task is held: its results come from another search
  kNobody,  // enough of the task is known from another search
};

// A result of another search.
struct KnownResult {
  int task = 0;
  Observation observation = {};
  bool is_new = false;  // false: the task's policy knows the candidate already
};

struct NewsOfOthers {
  std::vector<TunedBy> tuned_by;  // one for each task
  uint32_t trials = 0;            // the most trials that this search may have in all, from now on
  std::vector<KnownResult> results = {};  // those since the last call
};

class OtherSearches {
 public:
  virtual ~OtherSearches() = default;
  // The thread that runs Tune calls it before the first trial, after each result, and after each
  // Measurer::Wake. An error ends the job. Cheap while other searches tune none of the tasks.
  virtual StatusOr<NewsOfOthers> Take() = 0;
};

}  // namespace kiln::search
