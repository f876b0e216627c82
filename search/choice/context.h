// Contexts: who is asked which schedule a computation gets where nothing is searched, one within the
// other. TVM calls them dispatch contexts (v0.14, python/tvm/auto_scheduler/dispatcher.py).
//
//   const auto context = std::make_shared<HistoryBest>(
//       records, HistoryOptions{}, std::make_shared<SampledSchedule>(/*seed=*/1));
//   KILN_ASSIGN_OR_RETURN(const auto choice, context->Query(task));
//
// A query goes to the innermost context; what that does not know is asked of the one around it. What
// Update says of a computation is taken before all else, by queries of that context and of those
// within it that do not know better.
//
//   HistoryBest       the best record of the computation, or of a compatible one
//   FixedSchedule     these steps, wherever they apply
//   SampledSchedule   one that is chosen without measuring
//   Fallback          none, and says so in the log, once for each computation
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
  // `outer` is asked what this one does not know; null: nobody is.
  explicit Context(std::shared_ptr<Context> outer = nullptr) : outer_(std::move(outer)) {}
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // A choice of ChoiceSource::kNone: nobody knows.
  StatusOr<Choice> Query(const Task& task);

  // From now on these steps are this context's choice for the task's computation on targets that
  // mean the same (compiler/target/meaning.h). InvalidArgument: they do not apply to it, or leave
  // something open.
  Status Update(const Task& task, std::string_view steps);

 protected:
  // What this context knows of itself, but for what Update has said.
  virtual StatusOr<Choice> Find(const Task& task) = 0;
  // Keeps what Update has checked. Here: as long as the context lives.
  virtual Status Keep(const Task& task, std::string_view steps);

 private:
  Choice Kept(const Task& task);

  const std::shared_ptr<Context> outer_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>>
      kept_;  // by computation: targets and steps
};

struct HistoryOptions {
  // Where the computation has no record for the target: of those for other targets of its kind, and
  // of computations with the same stages at a finite distance (workload_distance.h) for any, that of
  // the least cost times distance. What is made of it is right; how fast it is nobody knows.
  bool include_compatible = false;
  // Set: records and compatible ones give way to the schedule that is chosen without measuring,
  // with this seed, where that is expected to be faster (record_or_heuristic.h). None: never.
  std::optional<uint64_t> heuristic_seed = {};
};

class HistoryBest final : public Context {
 public:
  // `records` outlive this; they are asked by one thread at a time. What a query finds is always of
  // the records as they are then, but for the computations that are compatible (StoreRecords).
  HistoryBest(KnownRecords& records, HistoryOptions options,
              std::shared_ptr<Context> outer = nullptr)
      : Context(std::move(outer)), records_(records), options_(options) {}

 protected:
  StatusOr<Choice> Find(const Task& task) override;

 private:
  StatusOr<Choice> Compatible(const Task& task);
  StatusOr<Choice> OrHeuristic(const Task& task, const store::Record& best);

  KnownRecords& records_;
  const HistoryOptions options_;
  std::mutex mutex_;
};

class FixedSchedule final : public Context {
 public:
  // `workload_ids`: only for these computations; empty: for all.
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
  std::set<std::string> said_;
};

// Do the steps make a program of the task? InvalidArgument: the reason why not.
Status CheckApplies(const Task& task, std::string_view steps);

// The best record, else a compatible one, else one that is chosen without measuring; and that also
// where it is expected to be faster than the record.
std::shared_ptr<Context> HistoryBestOrSample(KnownRecords& records, uint64_t seed);

// A computation and a schedule of it.
struct ScheduledDag {
  dag::DagPtr dag;
  Choice schedule;
};

// Of the task's computation and, if it takes inputs packed, the same with its inputs as they are
// (dag::PlainInputs): that whose record in `context` is the faster one. Without any: the computation
// itself, with what the context says of it.
StatusOr<ScheduledDag> FasterOf(const Task& task, Context& context);

}  // namespace kiln::search
