// Learns the base model of a new search (search/templates/tuners/base_model.h) from results that
// earlier jobs measured of a template, for any computation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"
#include "search/space/task.h"
#include "search/templates/template.h"
#include "search/templates/tuners/base_model.h"

namespace kiln::search {

// A trial of an earlier job.
struct EarlierTrial {
  const Task* task = nullptr;  // not owned; its target is like that of the search
  std::string origin = {};     // origin of its candidate
  std::vector<schedule::StepPtr> steps = {};
  std::optional<double> cost_s = {};  // empty if the trial failed
  // Number of the trial's group. Costs are compared only within a group: one computation on one
  // device.
  size_t group = 0;
};

struct TemplateHistory {
  std::shared_ptr<const BaseModel> model;  // null: there are too few points
  std::vector<size_t> points;  // for each group, the number of points of the template that lower
  size_t total() const;
};

// Learns from the trials that are points of the template: their origin has its name, and the
// template as it is now makes their steps from the index. Learns nothing if the parameters choose
// features that do not carry over. `groups` is the number of groups. Cost: some hundreds of
// microseconds for each trial, spread over the pool, and seconds for the training with thousands of
// trials. Cancelled once `stop` is requested.
StatusOr<TemplateHistory> LearnHistory(const Template& schedule_template,
                                       const Parameters& parameters,
                                       std::span<const EarlierTrial> trials, size_t groups,
                                       ThreadPool& pool, const std::stop_token& stop = {});

}  // namespace kiln::search
