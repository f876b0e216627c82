// What `kiln selftest` does: programs of every kind, every kind of fault, and a job in which
// candidates are broken and the runner's children are killed, all on one device of this machine by
// an embedded cluster.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace kiln::client {

struct SelfTestFlags {
  std::string device = "cuda";  // as `kiln runner --device`
  uint32_t trials = 32;         // of the job with faults; at least 24
  uint64_t seed = 1;
  double slack_s = 1;  // the next trial after a fault may take so long
  std::string log_folder;
};
// Prints a line per check, last "N passed, N failed, N skipped". The exit status: 1 when a check
// failed. Where there is no GPU for "cuda", all is skipped, in one line; any other device must be
// there.
StatusOr<int> SelfTest(const SelfTestFlags& flags, bool json);

}  // namespace kiln::client
