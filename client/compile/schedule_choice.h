// Which schedule a kernel of a network gets: the best record of its computation, or, where there is
// none, one that is chosen without measuring.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "device/calibration.h"
#include "graph/tasks.h"
#include "search/space/task.h"

namespace kiln::client {

struct ScheduleChoice {
  std::string steps;                     // a JSON array (schedule/step.h)
  std::string record;                    // its id; "": none, nothing was measured
  double cost_s = 0;                     // by the record
  target::HardwareParams hardware = {};  // of the device that measured it
  std::string device = {};               // its model; "" where the record does not say
  // Where the record is not one of this computation and target: what it is of.
  std::string reused_from = {};
};

// The choice that a record is.
ScheduleChoice ChoiceOf(const v1::Record& record);

// The best record of the computation for a target that means the same, on any device of it.
// Without one: a choice without steps.
StatusOr<ScheduleChoice> BestRecordOf(const dag::Dag& dag, const target::Target& target,
                                      Archive& archive);

// A computation and a schedule of it.
struct ScheduledDag {
  dag::DagPtr dag;
  ScheduleChoice schedule;
};

// Of the computation and, if it takes inputs packed, the same with its inputs as they are
// (dag::PlainInputs): that whose best record is the faster one, as BestRecordOf gives it. Without
// any: the computation itself.
StatusOr<ScheduledDag> FasterRecordOf(const dag::DagPtr& dag, const target::Target& target,
                                      Archive& archive);

// What records of other computations and targets there are for those that have none of their own.
// The steps of a record apply to a task of the same stages with other extents, and to a task of
// another target of the same kind: what is made of them is right, and how fast it is nobody knows.
class RelatedRecords {
 public:
  // The archive must outlive this. Reads its jobs with the first Find.
  explicit RelatedRecords(Archive& archive) : archive_(archive) {}

  // As TVM's dispatch with compatible records: of those of the task itself for other targets of the
  // kind, and of tasks at a finite distance (workload_distance.h) for any, that of the least cost
  // times distance. Its cost_s is 0: not known. Without one: a choice without steps.
  StatusOr<ScheduleChoice> Find(const graph::NetworkTask& task, const target::Target& target);

 private:
  struct Related {
    std::string key, id, description;
  };
  Status ReadJobs();

  Archive& archive_;
  std::optional<std::multimap<std::string, Related, std::less<>>> by_hash_;
};

// A schedule that is chosen without measuring, and what is known of it.
struct UnmeasuredChoice {
  std::string steps;       // a JSON array
  std::string origin;      // "sketch 1, by rule": see search/policies/policy.h
  double predicted_s = 0;  // by the analytic model; 0: there was nothing to choose
  int64_t looked_at = 0;   // schedules that were lowered and ranked
  double cpu_s = 0;        // of the calling thread, that choosing took
};

// What the policy `heuristic` proposes first (search/policies/heuristic_policy.h): it replays and
// lowers. `calibration`: of the analytic model for the task's device. The same seed gives the same
// one. Cost: tens of milliseconds on the calling thread.
StatusOr<UnmeasuredChoice> ChooseWithoutMeasuring(const search::Task& task,
                                                  const device::Calibration& calibration,
                                                  uint64_t seed);

}  // namespace kiln::client
