#include "scheduler/dispatch/builder_trust.h"

#include <cstddef>

namespace kiln::scheduler {
namespace {

// Most builders that are remembered. A farm has fewer, but each start of a builder has an id of its
// own.
constexpr size_t kMostBuilders = 10'000;

}  // namespace

bool BuilderTrust::IsDue(const std::string& builder) {
  const std::lock_guard lock(mutex_);
  if (programs_.size() >= kMostBuilders && !programs_.contains(builder)) programs_.clear();
  const int64_t before = programs_[builder]++;
  return before < kFirst || before % kOneOf == 0;
}

void BuilderTrust::Doubt(const std::string& builder) {
  const std::lock_guard lock(mutex_);
  programs_.erase(builder);
}

}  // namespace kiln::scheduler
