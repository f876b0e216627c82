// What a person reads at the end of a job.
#pragma once

#include <string>
#include <vector>

#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// The best of each task, how much was gained, that it was checked, and where to look next; for a
// job of one task its loops in a few lines, if `with_loops`. Ends with a newline.
std::string Summary(const v1::JobStatus& job, const std::vector<v1::Record>& best,
                    const Session& session, bool with_loops = true);

// "checked      against the reference, ...": of one record.
std::string CheckText(const v1::Record& record);
// A line for each whose check proved little.
std::string UncheckedLines(const std::vector<v1::Record>& records);
// A line for each whose cost is of rewritten layouts.
std::string RewrittenLines(const std::vector<v1::Record>& records);

}  // namespace kiln::client
