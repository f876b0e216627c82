// What goes through the dispatcher's two pools, and what comes out of them. Plain values: an item
// belongs to the queue or to the lane that has it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "proto/trial.pb.h"
#include "scheduler/races.h"
#include "scheduler/worker_pool.h"
#include "search/tuning/tune.h"
#include "store/store.h"

namespace kiln::scheduler {

// A trial from Submit to its result.
struct TrialInHand {
  search::Trial trial;
  uint64_t serial = 0;        // of this one, as numbers may be given out again
  std::stop_token abandoned;  // nothing is wanted of it any more
};

// The program that answers are compared with.
struct ReferenceBuild {};

struct FinalistBuild {
  std::shared_ptr<Race> race;
  size_t entry = 0;
};

// For builders: the candidate of a trial, the reference of a task, or a finalist.
struct BuildItem : WorkItem {
  int task = 0;
  std::string steps;
  int attempts = 0;             // failed ones
  std::string refused_by = {};  // the builder that has refused it first
  int refusals = 0;
  std::variant<TrialInHand, ReferenceBuild, FinalistBuild> work;
};

struct BuiltTrial {
  TrialInHand in_hand;
  std::string steps;
  std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: it did not build
  double build_s = 0;
  v1::TrialTimes build_times = {};
  std::string builder = {};
};

// For runners: a trial, or all finalists of a task.
struct RunItem : WorkItem {
  int task = 0;
  int attempts = 0;  // failed ones; of a trial also those to build it
  std::variant<BuiltTrial, std::shared_ptr<Race>> work;
};

using BuildItemPtr = std::unique_ptr<BuildItem>;
using RunItemPtr = std::unique_ptr<RunItem>;

// A pool gives back what it was given: that of builders build items, that of runners run items.
template <typename Item>
std::unique_ptr<Item> As(WorkItemPtr item) {
  return std::unique_ptr<Item>(static_cast<Item*>(item.release()));
}

// For people.
std::string NameOf(const BuildItem& item);
std::string NameOf(const RunItem& item);

// A token that never fires where nobody can give the item up.
std::stop_token AbandonedOf(const BuildItem& item);
std::stop_token AbandonedOf(const RunItem& item);

// A result on its way to the store.
struct MeasuredTrial {
  search::Trial trial;
  store::Record record;
  std::optional<double> reference_cost_s;        // as the runner said it
  std::shared_ptr<const v1::Artifact> artifact;  // when it may lead
};

}  // namespace kiln::scheduler
