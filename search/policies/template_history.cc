#include "search/policies/template_history.h"

#include <map>
#include <numeric>

#include "search/policies/template_features.h"
#include "search/templates/point_origin.h"

namespace kiln::search {
namespace {

// The spaces of a template for the computations of the trials. A computation that the template
// cannot schedule has none.
using Spaces = std::map<const Task*, std::optional<ConfigSpace>>;

Spaces SpacesOf(const Template& schedule_template, std::span<const EarlierTrial> trials) {
  Spaces spaces;
  for (const EarlierTrial& trial : trials) {
    const auto [at, is_new] = spaces.try_emplace(trial.task);
    if (!is_new) continue;
    StatusOr<ConfigSpace> space = schedule_template.Space(trial.task->dag);
    if (space.ok()) at->second = *std::move(space);
  }
  return spaces;
}

// Returns an empty list if the trial is no point of the template, or has no program.
std::vector<float> FeaturesOfTrial(const Template& schedule_template, const FeatureChoice& choice,
                                   const Spaces& spaces, const EarlierTrial& trial) {
  const std::optional<PointOrigin> origin = ParsePointOrigin(trial.origin);
  const std::optional<ConfigSpace>& space = spaces.at(trial.task);
  if (!origin || !space || origin->kind != schedule_template.kind() ||
      origin->name != schedule_template.name() || origin->index >= space->range())
    return {};
  const Config config = space->Get(origin->index);
  const StatusOr<Instance> instance = schedule_template.Instantiate(trial.task->dag, config);
  // The template has changed since the trial, or the record is of another program.
  if (!instance.ok() || !instance->state || instance->Hash() != schedule::HashSteps(trial.steps))
    return {};
  return FeaturesOfInstance(choice, *trial.task, config, *instance);
}

}  // namespace

size_t TemplateHistory::total() const {
  return std::accumulate(points.begin(), points.end(), size_t{0});
}

StatusOr<TemplateHistory> LearnHistory(const Template& schedule_template,
                                       const Parameters& parameters,
                                       std::span<const EarlierTrial> trials, size_t groups,
                                       ThreadPool& pool, const std::stop_token& stop) {
  TemplateHistory history{.model = nullptr, .points = std::vector<size_t>(groups)};
  const FeatureChoice choice = FeaturesOf(parameters);
  if (!choice.carries_over()) return history;
  const Spaces spaces = SpacesOf(schedule_template, trials);
  std::vector<EarlierPoint> points(trials.size());
  pool.ParallelFor(std::ssize(trials), [&](int64_t i) {
    if (stop.stop_requested()) return;
    const auto at = static_cast<size_t>(i);
    points[at].features = FeaturesOfTrial(schedule_template, choice, spaces, trials[at]);
  });
  if (stop.stop_requested()) return Cancelled("stopped");
  std::vector<std::optional<double>> best_s(groups);
  for (size_t i = 0; i < trials.size(); ++i) {
    if (points[i].features.empty()) continue;
    std::optional<double>& best = best_s[trials[i].group];
    const std::optional<double>& cost_s = trials[i].cost_s;
    ++history.points[trials[i].group];
    if (cost_s && (!best || *cost_s < *best)) best = cost_s;
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].cost_s && !points[i].features.empty())
      points[i].throughput = static_cast<float>(*best_s[trials[i].group] / *trials[i].cost_s);
  }
  std::erase_if(points, [](const EarlierPoint& point) { return point.features.empty(); });
  if (std::ssize(points) < parameters.template_least_history) return history;
  KILN_ASSIGN_OR_RETURN(history.model,
                        BaseModel::Learn(points, {parameters.template_rank_loss, stop}));
  return history;
}

}  // namespace kiln::search
