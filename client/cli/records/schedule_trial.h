// Tries a schedule that a person wrote or changed (docs/schedules.md) on this machine's device.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/cli/subject_flags.h"
#include "client/session.h"
#include "proto/trial.pb.h"

namespace kiln::client {

struct ScheduleTrial {
  // The schedule's computation: an operator, a text file, or a subject of `show`.
  SubjectFlags subject;
  // Path of the schedule's text; "-": stdin.
  std::string path;
  v1::MeasureOptions measure;
  uint32_t build_timeout_ms = 0;
};

// Builds, checks and times the schedule, and keeps it as a record of the session's database. Prints
// the result. Returns the exit status: 1 if the trial failed. Call InitGrpc before.
StatusOr<int> TrySchedule(const ScheduleTrial& wanted, const Session& session);

}  // namespace kiln::client
