// Says why a job waits or is slow, and what would help, from the answers of GetJob, ListJobs,
// Tracker.List and ListUsers. What these answers do not say is not said: which scheduler holds a
// lease, and how a job of another scheduler goes. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/scheduler.pb.h"
#include "proto/tracker.pb.h"
#include "scheduler/words/why_words.h"

namespace kiln {

// The answers of a farm.
struct FarmAnswers {
  // The jobs that are queued or run, the newest first.
  std::vector<v1::JobStatus> jobs = {};
  // nullopt: the tracker did not answer.
  std::optional<v1::ListReply> workers = std::nullopt;
  // The user of the job. Empty: the scheduler keeps no limits, or does not tell them.
  std::vector<v1::UserShare> users = {};
};

struct Reason {
  WhyKind kind = WhyKind::kRunning;
  // One sentence.
  std::string text;
  // At most 8 lines: the jobs or keys that the sentence is about, an estimate, notices.
  std::vector<std::string> details;
  std::string remedy;
};

// Returns at least one reason, the most important one first.
std::vector<Reason> WhyOf(const v1::JobStatus& job, const FarmAnswers& farm);

// Returns the estimate that fits the job's state, "ends in about 12 min"; "" if there is none.
std::string EstimateText(const v1::JobStatus& job, const FarmAnswers& farm);

// Returns {"job": "4f..", "state": "RUNNING", "estimate": "ends in about 12 min", "reasons":
// [{"kind": "busy", "text": "..", "details": [".."], "remedy": ".."}]}.
std::string WhyJson(const v1::JobStatus& job, const FarmAnswers& farm);

}  // namespace kiln
