// The defaults of a job's options (TuneOptions and MeasureOptions), and the limits that a scheduler
// checks. The services, the CLI and other front ends read them here.
#pragma once

#include <cstdint>

namespace kiln {

// ---- fields at 0. A front end may leave these fields at 0, and then a service takes the default.

inline constexpr uint32_t kDefaultTrials = 64;
// A round has at most trials / tasks.
inline constexpr uint32_t kDefaultTrialsPerRound = 64;
// Numbers of the gradient strategy: a factor, and rounds.
inline constexpr double kDefaultTaskBeta = 2;
inline constexpr uint32_t kDefaultTaskWindow = 3;
// Candidates per task. Targets that run no programs have none.
inline constexpr int32_t kDefaultFinalists = 8;
// Seconds.
inline constexpr double kDefaultReferenceLimit_s = 10;
// Factor over the best cost.
inline constexpr double kDefaultEarlyStopRatio = 10;
// Seconds for the answer of the user's process to one call.
inline constexpr double kDefaultCallbackTimeout_s = 300;
// Milliseconds of one build.
inline constexpr uint32_t kDefaultBuildTimeoutMs = 15'000;
// Milliseconds of the whole run of one trial.
inline constexpr uint32_t kDefaultRunTimeoutMs = 10'000;
// Calls of the program in a reading, and readings of a trial.
inline constexpr uint32_t kDefaultNumber = 3, kDefaultRepeat = 1;

// ---- fields for which 0 is a value. A front end fills them in.

inline constexpr uint64_t kDefaultSeed = 1;
// A share of the gradient strategy. A scheduler takes the default if the field is unset.
inline constexpr double kDefaultTaskAlpha = 0.2;
// Least milliseconds of a reading.
inline constexpr uint32_t kDefaultMinRepeatMs = 30;
// Milliseconds of further readings while the device would be idle, on targets that leave the host's
// cores alone. Other targets have none.
inline constexpr uint32_t kDefaultIdleMs = 50;

// ---- limits. A scheduler refuses a larger value.

// A job without a limit of trials has this many.
inline constexpr uint32_t kMaxTrials = 10'000'000;
inline constexpr int32_t kMaxFinalists = 1000;
// Rounds.
inline constexpr uint32_t kMaxTaskWindow = 1000;
// Calls in a reading, and readings of a trial.
inline constexpr uint32_t kMaxCalls = 1'000'000;
// Milliseconds of a build, of a run, of a reading, and of the pause after a trial.
inline constexpr uint32_t kLongestMs = 3'600'000;
// Milliseconds. Other jobs wait for a fifth of it at most.
inline constexpr uint32_t kLongestIdleMs = 10'000;
inline constexpr double kLongestReference_s = 86'400;
inline constexpr double kLongestCallback_s = 86'400;
// Builds of a user's function at once. Each has a thread of the scheduler.
inline constexpr uint32_t kMostServedBuilds = 256;

}  // namespace kiln
