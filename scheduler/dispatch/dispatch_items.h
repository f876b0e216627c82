// Items that go through the dispatcher's two pools, and the results that come out of them. All are
// plain values: an item belongs to the queue or to the work that holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "proto/trial.pb.h"
#include "scheduler/dispatch/worker_pool.h"
#include "scheduler/remeasure/races.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

// A trial from Submit to its result.
struct InFlightTrial {
  search::Trial trial;
  uint64_t serial = 0;        // unique; a trial's number may be given out again
  std::stop_token abandoned;  // requested when the trial's result is no longer wanted
  v1::TrialInstants instants = {};
};

// Asks for the program that answers are compared with.
struct ReferenceBuild {};

struct FinalistBuild {
  std::shared_ptr<Race> race;
  size_t entry = 0;
};

// An item for builders: the candidate of a trial, the reference of a task, or a finalist.
struct BuildItem : WorkItem {
  int task = 0;
  std::string steps;
  int attempts = 0;             // attempts that failed
  std::string refused_by = {};  // the first builder that refused it
  int refusals = 0;
  std::variant<InFlightTrial, ReferenceBuild, FinalistBuild> work;
};

struct BuiltTrial {
  InFlightTrial in_hand;
  std::string steps;
  std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: the candidate did not build
  double build_s = 0;
  v1::TrialTimes build_times = {};
  std::string builder = {};
};

// An item for runners: a trial, or all finalists of a task.
struct RunItem : WorkItem {
  int task = 0;
  int attempts = 0;  // attempts that failed; for a trial, those at building count too
  std::variant<BuiltTrial, std::shared_ptr<Race>> work;
};

using BuildItemPtr = std::unique_ptr<BuildItem>;
using RunItemPtr = std::unique_ptr<RunItem>;

// Casts an item back to its type. The pool of builders returns build items, the pool of runners
// returns run items.
template <typename Item>
std::unique_ptr<Item> As(WorkItemPtr item) {
  return std::unique_ptr<Item>(static_cast<Item*>(item.release()));
}

// Names the item in messages for people.
std::string NameOf(const BuildItem& item);
std::string NameOf(const RunItem& item);

// Returns a token that is never requested if nobody can give the item up.
std::stop_token AbandonedOf(const BuildItem& item);
std::stop_token AbandonedOf(const RunItem& item);

// A result on its way to the store.
struct MeasuredTrial {
  search::Trial trial;
  store::Record record;
  std::optional<double> reference_cost_s;        // reported by the runner
  std::shared_ptr<const v1::Artifact> artifact;  // set if the candidate may become an elite
  v1::TrialInstants instants;
};

}  // namespace kiln::scheduler
