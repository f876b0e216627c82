// What earlier jobs measured of a template, for whatever computation, as the base model of a new
// search (search/templates/tuners/base_model.h).
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
  const Task* task = nullptr;  // not owned: the computation, for a target like that of the search
  std::string origin = {};     // of its candidate
  std::vector<schedule::StepPtr> steps = {};
  std::optional<double> cost_s = {};  // none: it failed
  // Which costs are compared with each other: those of one computation on one device.
  size_t group = 0;
};

struct TemplateHistory {
  std::shared_ptr<const BaseModel> model;  // null: there are too few
  std::vector<size_t> points;  // of each group, how many are points of the template and lower
  size_t total() const;
};

// Learns from those of the trials that are points of the template: their origin has its name, and
// their steps are what the template, as it is now, makes of the index. None where the parameters
// choose features that do not carry over. `groups`: how many there are. Cost: some hundreds of
// microseconds for each trial over the pool, and seconds for the training with thousands. Cancelled
// once `stop` is requested.
StatusOr<TemplateHistory> LearnHistory(const Template& schedule_template,
                                       const Parameters& parameters,
                                       std::span<const EarlierTrial> trials, size_t groups,
                                       ThreadPool& pool, const std::stop_token& stop = {});

}  // namespace kiln::search
