// Finds what this machine offers to Kiln and what it lacks: one row per finding.
#pragma once

#include <string>
#include <vector>

#include "client/session.h"

namespace kiln::client {

struct Finding {
  // The subject: "CPU".
  std::string what;
  // False: Kiln needs something that is missing, or runs worse without it.
  bool ok = true;
  // "AMD EPYC 9654, 2 cores, AVX-512".
  std::string detail;
  // Set if it is not ok, but Kiln works as well without it: programs have a limit less.
  bool is_gap = false;
};

// Returns the findings about this machine and the session's scheduler: whose keys the session has
// and whether they hold, whether the clocks agree, whether the scheduler answers, what its jobs do
// and what they wait for. Without a scheduler the findings include the database file and its disk.
// If KILN_TRACKER names a tracker, they include its workers.
std::vector<Finding> Diagnose(const Session& session);

}  // namespace kiln::client
