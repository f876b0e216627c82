// Figures of the database's file and its disk for a monitoring system.
#pragma once

#include <string>

#include "base/metrics/metrics.h"

namespace kiln::scheduler {

// Adds kiln_database_bytes of the file and of its log of changes, and the size and the free bytes
// of their disk. `path` is that of the database. A figure that the kernel does not tell is left
// out.
void CollectDatabase(const std::string& path, MetricSheet& sheet);

}  // namespace kiln::scheduler
