#include "search/policies/template_policy.h"

#include "base/clock.h"
#include "search/policies/template_features.h"
#include "search/templates/tuners/coordinate_tuner.h"
#include "search/templates/tuners/genetic_tuner.h"
#include "search/templates/tuners/model_tuner.h"

namespace kiln::search {
namespace {

ConfigSpace SpaceOf(const Template& schedule_template, const dag::DagPtr& dag) {
  StatusOr<ConfigSpace> space = schedule_template.Space(dag);
  KILN_CHECK(space.ok(), "{}", Message(space.status()));
  return *std::move(space);
}

using Make = std::unique_ptr<Policy> (*)(const Task&, Parameters, uint64_t, const PolicyOptions&);

template <typename Tuner>
std::unique_ptr<Policy> MakeSeeded(const Task& task, Parameters parameters, uint64_t seed,
                                   const PolicyOptions& options) {
  return std::make_unique<TemplatePolicy>(
      task, parameters, options.schedule_template,
      [seed](const ConfigSpace& space) { return std::make_unique<Tuner>(space, seed); });
}

std::unique_ptr<Policy> MakeGenetic(const Task& task, Parameters parameters, uint64_t seed,
                                    const PolicyOptions& options) {
  const GeneticOptions genetic{.population = parameters.template_population};
  return std::make_unique<TemplatePolicy>(
      task, parameters, options.schedule_template, [seed, genetic](const ConfigSpace& space) {
        return std::make_unique<GeneticTuner>(space, seed, genetic);
      });
}

std::unique_ptr<Policy> MakeXgb(const Task& task, Parameters parameters, uint64_t seed,
                                const PolicyOptions& options) {
  const ModelOptions model{.plan_size = parameters.template_plan_size,
                           .rank_loss = parameters.template_rank_loss,
                           .diversity_ratio = parameters.template_diversity,
                           .base = parameters.template_history ? options.base_model : nullptr,
                           .stop = task.stop};
  const FeatureChoice choice = FeaturesOf(parameters);
  return std::make_unique<TemplatePolicy>(
      task, parameters, options.schedule_template,
      [&task, seed, model, choice,
       schedule_template = options.schedule_template](const ConfigSpace& space) {
        auto features = [&task, &space, choice, schedule_template](int64_t index) {
          return FeaturesOfPoint(choice, *schedule_template, task, space.Get(index));
        };
        return std::make_unique<ModelTuner>(space, std::move(features), seed, model);
      });
}

}  // namespace

constinit const PolicyKind kTemplateXgb = {
    .name = "template.xgb",
    .what = "a template's knobs by a model that learns from what is measured, and annealing",
    .uses_template = true,
    .learns_from_points = true,
    .make = MakeXgb};

constinit const PolicyKind kTemplateGenetic = {.name = "template.genetic",
                                               .what = "a template's knobs by a genetic search",
                                               .uses_template = true,
                                               .make = MakeGenetic};
constinit const PolicyKind kTemplateCoordinate = {
    .name = "template.coordinate",
    .what = "a template's knobs by coordinate descent",
    .uses_template = true,
    .make = MakeSeeded<CoordinateTuner>};
constinit const PolicyKind kTemplateRandom = {.name = "template.random",
                                              .what = "a template's knobs at random",
                                              .uses_template = true,
                                              .make = MakeSeeded<RandomTuner>};
constinit const PolicyKind kTemplateGrid = {
    .name = "template.grid",
    .what = "a template's knobs in the order of their indices",
    .uses_template = true,
    .make = [](const Task& task, Parameters parameters, uint64_t,
               const PolicyOptions& options) -> std::unique_ptr<Policy> {
      return std::make_unique<TemplatePolicy>(
          task, parameters, options.schedule_template,
          [](const ConfigSpace& space) { return std::make_unique<GridTuner>(space); });
    }};

TemplatePolicy::TemplatePolicy(const Task& task, const Parameters& parameters,
                               TemplatePtr schedule_template, const MakeTuner& make_tuner)
    : task_(task),
      max_rejected_draws_(parameters.max_rejected_draws),
      template_(std::move(schedule_template)),
      space_(SpaceOf(*template_, task.dag)),
      tuner_(make_tuner(space_)) {}

void TemplatePolicy::Tell(int64_t index, std::optional<double> cost_s) {
  tuner_->Tell(index, cost_s && *cost_s > 0 ? 1 / *cost_s : 0);
}

std::optional<int64_t> TemplatePolicy::IndexOf(const Candidate& candidate) const {
  const std::optional<PointOrigin> origin = ParsePointOrigin(candidate.origin);
  if (!origin || origin->kind != template_->kind() || origin->name != template_->name() ||
      origin->index >= space_.range() || !space_.IsValid(origin->index))
    return std::nullopt;
  const StatusOr<Instance> instance = template_->Instantiate(task_.dag, space_.Get(origin->index));
  const bool is_same = instance.ok() && instance->Hash() == candidate.hash;
  return is_same ? std::optional(origin->index) : std::nullopt;
}

// A kernel's candidate has the values in place of its steps, so they are left out of the origin.
PointOrigin TemplatePolicy::OriginOf(int64_t index, bool is_kernel) const {
  return {.kind = std::string(template_->kind()),
          .name = std::string(template_->name()),
          .index = index,
          .values = is_kernel ? std::string() : PrintValues(space_.Get(index).entities)};
}

void TemplatePolicy::Refuse(int64_t index, Drop drop, const Status& why) {
  constexpr int64_t kMaxLoggedRefusals = 20;  // in one round, for each reason
  const std::string text = fmt::format("config {}: {}: {}", index,
                                       PrintValues(space_.Get(index).entities), Message(why));
  report_.AddDrop(drop, InvalidArgument("{}", text));
  std::string& said = report_.drop_examples[static_cast<size_t>(drop)];
  if (report_.count(drop) > 1 && report_.count(drop) <= kMaxLoggedRefusals) said += "\n    " + text;
  Tell(index, std::nullopt);
}

std::optional<Candidate> TemplatePolicy::MakeCandidate(int64_t index) {
  StatusOr<Instance> instance = template_->Instantiate(task_.dag, space_.Get(index));
  if (!instance.ok()) {
    Refuse(index, Drop::kIllegal, instance.status());
    return std::nullopt;
  }
  const uint64_t hash = instance->Hash();
  if (const auto known = costs_s_.find(hash); known != costs_s_.end()) {
    ++report_.count(Drop::kKnown);
    indices_[hash].push_back(index);
    Tell(index, known->second);
    return std::nullopt;
  }
  std::vector<int64_t>& indices = indices_[hash];
  indices.push_back(index);
  // Another point with these steps stands for it.
  if (indices.size() > 1 || avoided_.contains(hash)) {
    ++report_.count(Drop::kKnown);
    return std::nullopt;
  }
  Drop drop = Drop::kIllegal;
  const Status runs = template_->CheckRuns(*instance, task_, drop);
  if (!runs.ok()) {
    Refuse(index, drop, runs);
    costs_s_[hash] = std::nullopt;
    return std::nullopt;
  }
  Candidate candidate{.steps = {},
                      .hash = hash,
                      .origin = PrintPointOrigin(OriginOf(index, instance->kernel.has_value()))};
  if (instance->state) candidate.steps = instance->state->steps();
  candidate.kernel = std::move(instance->kernel);
  return candidate;
}

StatusOr<std::vector<Candidate>> TemplatePolicy::Propose(int n) {
  const double start = Clock::Real().MonotonicSeconds();
  report_ = {.round = report_.round + 1};
  std::vector<Candidate> candidates;
  int rejected = 0;
  while (std::ssize(candidates) < n && rejected < max_rejected_draws_) {
    if (task_.stop.stop_requested()) return Cancelled("stopped");
    const std::optional<int64_t> index = tuner_->Next();
    if (!index) break;
    ++report_.sampled;
    std::optional<Candidate> candidate = MakeCandidate(*index);
    if (task_.stop.stop_requested()) return Cancelled("stopped");
    if (!candidate) {
      ++rejected;
      continue;
    }
    rejected = 0;
    candidates.push_back(*std::move(candidate));
  }
  report_.proposed = static_cast<int>(candidates.size());
  report_.wall_s = Clock::Real().MonotonicSeconds() - start;
  found_any_ = found_any_ || !candidates.empty();
  if (candidates.empty() && !found_any_ && report_.sampled > 0)
    return FailedPrecondition("no configuration of {} {} can be run\n{}", template_->kind(),
                              template_->name(), PrintRound(report_));
  return candidates;
}

void TemplatePolicy::Observe(std::span<const Observation> observations) {
  for (const Observation& o : observations) {
    const std::optional<double> cost_s = o.valid ? std::optional(o.cost_s) : std::nullopt;
    found_any_ = true;
    if (o.corrects && !costs_s_.contains(o.candidate.hash)) continue;
    costs_s_[o.candidate.hash] = cost_s;
    std::vector<int64_t>& indices = indices_[o.candidate.hash];
    if (indices.empty()) {
      if (const std::optional<int64_t> index = IndexOf(o.candidate)) indices.push_back(*index);
    }
    for (const int64_t index : indices) Tell(index, cost_s);
  }
}

}  // namespace kiln::search
