// Contexts answer which schedule a computation gets when nothing is searched. Contexts nest. TVM
// calls them dispatch contexts (v0.14, python/tvm/auto_scheduler/dispatcher.py).
//
//   const auto context = std::make_shared<HistoryBest>(
//       records, HistoryOptions{}, std::make_shared<SampledSchedule>(/*seed=*/1));
//   KILN_ASSIGN_OR_RETURN(const auto choice, context->Query(task));
//
// A query goes to the innermost context, and on to the context around it if the inner one knows no
// schedule. Within one context, schedules that Update has set come before all others.
//
//   HistoryBest       the best record of the computation, or of a compatible one
//   FixedSchedule     given steps, for each computation that they apply to
//   SampledSchedule   a schedule that is chosen without measuring
//   Fallback          no schedule, which it logs once for each computation
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/step.h"
#include "search/choice/choice.h"
#include "search/choice/known_records.h"
#include "search/space/task.h"

namespace kiln::search {

class Context {
 public:
  // `outer` is asked if this context knows no schedule. Null: no other context is asked.
  explicit Context(std::shared_ptr<Context> outer = nullptr) : outer_(std::move(outer)) {}
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Returns a choice of ChoiceSource::kNone if no context knows a schedule.
  StatusOr<Choice> Query(const Task& task);

  // Makes these steps this context's choice for the task's computation, on targets that mean the
  // same (compiler/target/meaning.h). InvalidArgument if the steps do not apply to the computation,
  // or leave a choice open.
  Status Update(const Task& task, std::string_view steps);

 protected:
  // Returns the choice of this context alone, without the schedules that Update has set.
  virtual StatusOr<Choice> Find(const Task& task) = 0;
  // Keeps steps that Update has checked. This default keeps them as long as the context lives.
  virtual Status Keep(const Task& task, std::string_view steps);

 private:
  Choice Kept(const Task& task);

  const std::shared_ptr<Context> outer_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>>
      kept_;  // key: computation; value: targets and steps
};

struct HistoryOptions {
  // If the computation has no record for the target, use a compatible record: one of another target
  // of the same kind, or one of a computation with the same stages at a finite distance
  // (workload_distance.h). The record with the least product of cost and distance is chosen, of the
  // way of measuring that goes first (store::Rank). Its program is correct, but its speed is
  // unknown.
  bool include_compatible = false;
  // "graph" or "stream": only records that were measured as a program is deployed
  // (device/measured_as.h); "": of any way. A computation that has records for the target, but none
  // of these, is FailedPrecondition, and one that has none is NotFound.
  std::string as_deployed = {};
  // If set, the schedule that is chosen without measuring, with this seed, replaces records and
  // compatible records where it is expected to be faster (record_or_heuristic.h). Compatible
  // records then have to be worth reusing (IsWorthReusing).
  std::optional<uint64_t> heuristic_seed = {};
};

class HistoryBest final : public Context {
 public:
  // `records` outlive this object; one thread at a time reads them. Each query reads the current
  // records, but the list of compatible computations may be older (StoreRecords).
  HistoryBest(KnownRecords& records, HistoryOptions options,
              std::shared_ptr<Context> outer = nullptr)
      : Context(std::move(outer)), records_(records), options_(options) {}

 protected:
  StatusOr<Choice> Find(const Task& task) override;

 private:
  StatusOr<std::vector<store::Record>> RecordsFor(const Task& task, const std::string& id);
  StatusOr<Choice> Compatible(const Task& task);
  StatusOr<Choice> OrHeuristic(const Task& task, const store::Record& best);

  KnownRecords& records_;
  const HistoryOptions options_;
  std::mutex mutex_;
};

class FixedSchedule final : public Context {
 public:
  // If `workload_ids` is empty, the steps are for all computations; else only for these.
  FixedSchedule(std::string steps, std::set<std::string> workload_ids = {},
                std::shared_ptr<Context> outer = nullptr)
      : Context(std::move(outer)),
        steps_(std::move(steps)),
        workload_ids_(std::move(workload_ids)) {}

 protected:
  StatusOr<Choice> Find(const Task& task) override;

 private:
  const std::string steps_;
  const std::set<std::string> workload_ids_;
};

class SampledSchedule final : public Context {
 public:
  explicit SampledSchedule(uint64_t seed) : seed_(seed) {}

 protected:
  // Takes tens of milliseconds.
  StatusOr<Choice> Find(const Task& task) override;

 private:
  const uint64_t seed_;
};

class Fallback final : public Context {
 protected:
  StatusOr<Choice> Find(const Task& task) override;

 private:
  std::mutex mutex_;
  std::set<std::string> warned_workloads_;
};

// Checks that the steps make a program of the task. InvalidArgument says why they do not.
Status CheckApplies(const Task& task, std::string_view steps);

// Chooses the best record, else a compatible one, else a schedule that is chosen without measuring.
// The latter is also chosen if it is expected to be faster than the record.
std::shared_ptr<Context> HistoryBestOrSample(KnownRecords& records, uint64_t seed);

// A computation and a schedule of it.
struct ScheduledDag {
  dag::DagPtr dag;
  Choice schedule;
};

// If the task's computation takes packed inputs, compares it with the same computation with plain
// inputs (dag::PlainInputs), and returns the one whose record in `context` is faster; if both were
// measured in different ways, the one whose way goes first (store::Rank). If neither has a record,
// returns the task's computation with the context's choice for it.
StatusOr<ScheduledDag> FasterOf(const Task& task, Context& context);

}  // namespace kiln::search
