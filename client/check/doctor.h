// What this machine offers to Kiln and what it lacks: one row per finding.
#pragma once

#include <string>
#include <vector>

#include "client/session.h"

namespace kiln::client {

struct Finding {
  std::string what;    // "CPU"
  bool ok = true;      // false: something Kiln needs, or runs worse without
  std::string detail;  // "AMD EPYC 9654, 2 cores, AVX-512"
};

// Of the session's scheduler: whether it answers, what its jobs do and what they wait for. Without
// one, of its database file and the disk that it is on. Where KILN_TRACKER names a tracker, of the
// workers there.
std::vector<Finding> Diagnose(const Session& session);

}  // namespace kiln::client
