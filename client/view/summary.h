// The text that a person reads at the end of a job.
#pragma once

#include <string>
#include <vector>

#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns the best result of each task, the gain, whether it was checked, and where to look next.
// For a job of one task it has the loops in a few lines, if `with_loops`. Ends with a newline.
std::string Summary(const v1::JobStatus& job, const std::vector<v1::Record>& best,
                    const Session& session, bool with_loops = true);

// Returns "checked      against the reference, ..." for one record.
std::string CheckText(const v1::Record& record);
// Returns a line for each record whose check proved little.
std::string UncheckedLines(const std::vector<v1::Record>& records);
// Returns a line for each record whose cost is in doubt because its device was slow.
std::string MarkedLines(const std::vector<v1::Record>& records);
// Returns a line for each record whose cost is that of rewritten layouts.
std::string RewrittenLines(const std::vector<v1::Record>& records);

}  // namespace kiln::client
