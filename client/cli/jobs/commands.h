// The commands about jobs.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddTune(CLI::App& tune, SessionFlags& session);
Run AddSubmit(CLI::App& submit, SessionFlags& session);
Run AddJobs(CLI::App& jobs, SessionFlags& session);
Run AddWhy(CLI::App& why, SessionFlags& session);
Run AddWatch(CLI::App& watch, SessionFlags& session);
Run AddTrace(CLI::App& trace, SessionFlags& session);
Run AddCancel(CLI::App& cancel, SessionFlags& session);
Run AddCalibrate(CLI::App& calibrate, SessionFlags& session);
Run AddLocal(CLI::App& local, SessionFlags& session);

}  // namespace kiln::client
