#include "scheduler/dispatch/builder_trust.h"

namespace kiln::scheduler {

bool BuilderTrust::IsDue(const std::string& builder) {
  const std::lock_guard lock(mutex_);
  const int64_t before = programs_[builder]++;
  return before < kFirst || before % kOneOf == 0;
}

void BuilderTrust::Doubt(const std::string& builder) {
  const std::lock_guard lock(mutex_);
  programs_.erase(builder);
}

}  // namespace kiln::scheduler
