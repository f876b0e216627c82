// Estimates when jobs start and end, from what a scheduler tells about them now. There is no
// estimate where nothing supports one. An estimate knows nothing of jobs that come later, of early
// stops, and of the last readings of the best candidates. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln {

// Returns the seconds until a running job has its trials or has used up its time, whichever comes
// first. The trials that are left take as long as those of the last minute. nullopt: the job does
// not run, waits for workers, or measures its best candidates again; or it has no limit that is
// known to come.
std::optional<double> SecondsToEnd(const v1::JobStatus& job);

// Returns the seconds until a scheduler takes a queued job: each job that runs is a place, the jobs
// before it in the queue take the places as they become free, and run at the mean pace of the jobs
// that run. For a running job that waits for a device of `holders`, the jobs that hold such
// devices: the seconds until the first of them ends, if all have a higher priority, because
// devices go in turns among equals. `all` is the answer to ListJobs. nullopt: an end that the start
// hangs on has no estimate, or jobs of other users wait with the same priority.
std::optional<double> SecondsToStart(const v1::JobStatus& job,
                                     const std::vector<v1::JobStatus>& all);
std::optional<double> SecondsToDevice(const v1::JobStatus& job,
                                      const std::vector<const v1::JobStatus*>& holders);

// Returns "ends in about 12 min" or "starts in about 3 h"; "" without an estimate.
std::string EndsText(std::optional<double> seconds);
std::string StartsText(std::optional<double> seconds);

}  // namespace kiln
