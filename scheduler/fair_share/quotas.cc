#include "scheduler/fair_share/quotas.h"

namespace kiln::scheduler {
namespace {

std::string Remedy(std::string_view user, std::string_view flag) {
  return fmt::format("an admin changes the limit by `kiln users set {} --{} N`", user, flag);
}

}  // namespace

bool HasQuotas(const store::UserLimits& limits) {
  return limits.jobs > 0 || limits.trials_per_day > 0 || limits.stored_bytes > 0;
}

Status CheckQuotas(std::string_view user, const store::UserLimits& limits,
                   const store::UserTotals& totals, uint64_t trials) {
  if (limits.jobs > 0 && totals.unfinished_jobs >= limits.jobs) {
    return ResourceExhausted("'{}' has {} unfinished jobs, and his limit is {}; {}", user,
                             totals.unfinished_jobs, limits.jobs, Remedy(user, "jobs"));
  }
  const uint64_t taken = totals.trials_since + totals.trials_to_come;
  const bool fits = taken <= limits.trials_per_day && trials <= limits.trials_per_day - taken;
  if (limits.trials_per_day > 0 && !fits) {
    return ResourceExhausted(
        "the job asks for {} trials, '{}' took {} in the last 24 hours and has {} to come in "
        "unfinished jobs, and his limit is {} a day; {}",
        trials, user, totals.trials_since, totals.trials_to_come, limits.trials_per_day,
        Remedy(user, "trials-per-day"));
  }
  if (limits.stored_bytes > 0 && totals.stored_bytes >= limits.stored_bytes) {
    return ResourceExhausted(
        "the records of '{}' take {} bytes, and his limit is {}; an operator makes room with "
        "`kiln db prune` or `kiln records delete`, or {}",
        user, totals.stored_bytes, limits.stored_bytes, Remedy(user, "stored-bytes"));
  }
  return OkStatus();
}

}  // namespace kiln::scheduler
