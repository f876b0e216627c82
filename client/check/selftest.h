// `kiln selftest` runs programs of every kind, every kind of fault, and a job in which candidates
// are broken and the runner's children are killed. An embedded cluster runs all on one device of
// this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace kiln::client {

struct SelfTestFlags {
  // The value of `kiln runner --device`.
  std::string device = "cuda";
  // Trials of the job with faults; at least 24.
  uint32_t trials = 32;
  uint64_t seed = 1;
  // Seconds that the next trial after a fault may take.
  double slack_s = 1;
  std::string log_folder;
};
// Prints a line per check, and at the end "N passed, N failed, N skipped". Returns the exit status:
// 1 if a check failed. If "cuda" has no GPU here, all checks are skipped with one line; any other
// device must exist.
StatusOr<int> SelfTest(const SelfTestFlags& flags, bool json);

}  // namespace kiln::client
