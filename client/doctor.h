// What this machine offers to Kiln and what it lacks: one row per finding.
#pragma once

#include <string>
#include <vector>

namespace kiln::client {

struct Finding {
  std::string what;    // "CPU"
  bool ok = true;      // false: something Kiln needs, or runs worse without
  std::string detail;  // "AMD EPYC 9654, 2 cores, AVX-512"
};

// `db`: the database file whose disk is looked at.
std::vector<Finding> Diagnose(const std::string& db);

}  // namespace kiln::client
