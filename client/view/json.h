// Formats the output of `--json`: one JSON value per line, keys in snake_case. The events of a job:
//
//   {"event": "start", "job": "4f..", "trials": 64, "minutes": null, "place": "kiln.db"}
//   {"event": "trial", "job": "4f..", "trial": 3, "task": 0, "record": 17, "error": "NO_ERROR",
//    "message": "", "cost_s": 1.2e-3, "gflops": 187.2, "stopped_early": false,
//    "best_cost_s": 1.1e-3, "trials_done": 4, "origin": "sketch 0, random", "score": null}
//   for a hand-written kernel also "parameters": {"block_size_x": 32, ..}
//   {"event": "round", "job": "4f..", "round": 0, "task": 0, "trials": 16, "elapsed_s": 3.1,
//    "search_s": 0.2, "total_latency_s": 1.1e-3, "best_s": [1.1e-3], "report": ".."}
//   {"event": "notice", "job": "4f..", "text": ".."}
//   {"event": "end", "job": "4f..", "state": "SUCCEEDED",
//    "ending": "TRIALS_USED_UP", "message": "", "trials_done": 64,
//    "errors": {"WRONG_ANSWER_ERROR": 1}, "elapsed_s": 12.5, "busy_share": 0.91,
//    "elites_share": 0.35, "tasks":
//    [{"description": "..", "workload_id": "..", "workload_key": "..", "best_cost_s": 1.1e-3,
//    "gflops": 204,
//    "reference_cost_s": 0.02, "reference_record": 1, "reference_message": "", "speed_up": 18.1,
//    "max_error": 3e-7, "record": 12}]}
//
// reference_* belong to the unscheduled loops, which are a candidate like any other.
// "reference_message" is a remark on how they were timed.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns every field by its name in proto/, zeros included; 64-bit numbers are strings.
std::string JsonOf(const google::protobuf::Message& message);
// Returns an array of messages.
template <typename Messages>
std::string JsonOfAll(const Messages& messages) {
  std::string text = "[";
  for (const auto& message : messages) text += (text.size() > 1 ? "," : "") + JsonOf(message);
  return text + "]";
}

// Returns the string in quotes.
std::string JsonString(const std::string& text);

// Returns {"form": "schedule", "target": "llvm ..", "steps": "[..]", "text": ".."}.
std::string ShownJson(const std::string& form, const std::string& target, const std::string& steps,
                      const std::string& text);

std::string StartEvent(const std::string& job_id, const v1::JobSpec& spec,
                       const std::string& place);
// Describes an event with a record.
std::string TrialEvent(const v1::JobEvent& event);
std::string NoticeEvent(const v1::JobStatus& job, const std::string& text);
// Describes an event with a round.
std::string RoundEvent(const v1::JobEvent& event);
// `best` has the best records of the tasks, as far as there are any.
std::string EndEvent(const v1::JobStatus& job, const std::vector<v1::Record>& best);

}  // namespace kiln::client
