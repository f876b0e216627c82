#include "scheduler/jobs/job_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/numbers/rng.h"
#include "base/thread_pool.h"
#include "compiler/dag/sample_outputs.h"
#include "compiler/handwritten/kernel_text.h"
#include "costmodel/cost_model_kind.h"
#include "search/choice/heuristic_choice.h"
#include "search/evolution/transfer.h"
#include "search/policies/empty_policy.h"
#include "search/policies/first_candidates.h"
#include "search/policies/policy.h"
#include "search/templates/template.h"
#include "search/tuning/objective.h"

namespace kiln::scheduler {
namespace {

// A model that knows little beyond this task begins to rank after so many results of the task. A
// model that learns from at least so many tasks at once knows more.
constexpr int kOwnResults = 16;
constexpr size_t kTasksThatTeach = 4;

// The first rounds are smaller: the model learns early, and a job of many tasks keeps trials for
// the best ones. The rounds of one of several tasks are smaller still, because each round may show
// what other tasks with the same sums gain.
constexpr uint32_t kFirstRoundTrials = 16;
constexpr uint32_t kFirstRoundTrialsOfSeveral = 8;
constexpr uint32_t kWarmUpShare = 4;  // the first rounds take one out of so many trials

// Schedules that are chosen without measuring: the heuristic schedule of a compilation without
// records, and the next best one.
constexpr int kHeuristicSchedules = 2;

// A task of several gets so many results of its search before its second heuristic schedule.
constexpr int kResultsBeforeSecond = 8;

// Tasks whose candidates are found at the same time: one for each so many cores.
constexpr int kCoresOfSearch = 8;
constexpr int kMostSearches = 8;

using FirstSchedules = std::vector<search::Candidate>;  // schedules of one task

std::optional<uint32_t> UnlessZero(uint32_t number) {
  return number == 0 ? std::nullopt : std::optional(number);
}

// Tells whether other candidates are measured before those that the policy proposes. `given` is the
// job's template, or null.
bool HasFirstCandidates(const v1::TuneOptions& options, const search::TemplatePtr& given) {
  return options.kernel().empty() && options.policy() != search::kEmpty.name &&
         (given == nullptr || given->admits_others());
}

search::TaskSchedulerOptions ScheduleOf(const v1::JobSpec& spec, bool has_first,
                                        ServedSearch* served) {
  const v1::TuneOptions& options = spec.options();
  search::TaskSchedulerOptions schedule;
  schedule.strategy = options.task_strategy() == kRoundRobinStrategy
                          ? search::TaskStrategy::kRoundRobin
                          : search::TaskStrategy::kGradient;
  schedule.alpha = options.task_alpha();
  schedule.beta = options.task_beta();
  schedule.backward_window = static_cast<int>(options.task_window());
  schedule.round_trials = options.trials_per_round();
  const uint32_t share =
      options.trials() / (kWarmUpShare * static_cast<uint32_t>(spec.tasks_size()));
  // Each of several tasks gets a measured schedule before any of them is tuned.
  const bool has_opening = spec.tasks_size() > 1 && has_first;
  if (has_opening) schedule.opening_trials = 1;
  schedule.first_round_trials =
      std::clamp(share, 1u, has_opening ? kFirstRoundTrialsOfSeveral : kFirstRoundTrials);
  schedule.task_early_stopping = UnlessZero(options.early_stopping());
  schedule.early_stopping = UnlessZero(options.total_early_stopping());
  schedule.seed = options.seed();
  if (served != nullptr && served->served().objective()) {
    schedule.objective = served->Objective(options.latency_target_s());
    return schedule;
  }
  std::vector<search::VariantGroup> groups;
  for (const v1::TaskSpec& task : spec.tasks()) {
    if (!task.has_alternative_of()) groups.push_back({task.weight(), task.network()});
  }
  const auto kind = search::ParseObjective(options.objective());
  schedule.objective = search::MakeObjective(kind.value_or(search::ObjectiveKind::kWeightedSum),
                                             std::move(groups), options.latency_target_s());
  return schedule;
}

std::string TagOf(const dag::Dag& dag) {
  std::string tags;
  for (const dag::OpNode& node : dag.nodes()) {
    const std::string& tag = node.op->attrs().task_scheduler_tag;
    if (!tag.empty()) tags += tag + "_";
  }
  return search::SimilarityTag(tags, dag.flop_count());
}

search::ScheduledTask FactsOf(const v1::TaskSpec& spec, const CheckedTask& task,
                              double estimate_s) {
  search::ScheduledTask facts;
  facts.weight = spec.weight();
  if (spec.has_alternative_of()) facts.alternative_of = static_cast<int>(spec.alternative_of());
  facts.flop_count = task.flop_count;
  facts.similarity_tag = TagOf(*task.dag);
  facts.sums = search::SumsKey(*task.dag);
  facts.estimate_s = estimate_s;
  return facts;
}

// Samples the outputs of loops that run for too long. A reference kernel has no sample.
std::optional<SampledReference> SampleOf(const CheckedTask& task, const v1::TuneOptions& options) {
  const bool is_loops =
      task.target.kind->runs_programs && !handwritten::HasReferenceKernel(options.kernel());
  if (!is_loops || PlainSecondsOf(task) <= options.reference_limit_s()) return std::nullopt;
  auto sample = MakeSampledReference(task.text(), options.seed());
  // Without a sample the loops are waited for.
  if (!sample.ok()) LogWarn("no sample of the outputs: {}", Message(sample.status()));
  return sample.ok() ? std::optional(*std::move(sample)) : std::nullopt;
}

// A search of one task uses all cores in part of its time only.
int SearchesAtOnce() { return std::clamp(AvailableCpus() / kCoresOfSearch, 1, kMostSearches); }

search::TuneOptions OptionsOf(const v1::JobSpec& spec, bool has_first, const JobHistory& history,
                              ServedSearch* served) {
  search::TuneOptions options;
  options.trials = spec.options().trials();
  options.first_trial = history.next_trial;
  options.missing = history.missing_trials;
  options.schedule = ScheduleOf(spec, has_first, served);
  options.lock_step = spec.options().lock_step();
  // Code of the user is asked by one search at a time.
  if (served == nullptr) options.searches = SearchesAtOnce();
  return options;
}

// Chooses the first schedules of all tasks, on all cores.
StatusOr<std::vector<FirstSchedules>> FirstSchedulesOf(const LeasedDevice& device) {
  std::vector<FirstSchedules> all(device.tasks.size());
  std::vector<Status> failed(all.size());
  ThreadPool pool(0);
  pool.ParallelFor(static_cast<int64_t>(all.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    auto chosen = search::HeuristicSchedules(device.tasks[at], kHeuristicSchedules);
    failed[at] = chosen.status();
    if (chosen.ok()) all[at] = *std::move(chosen);
  });
  for (const Status& status : failed) KILN_RETURN_IF_ERROR(status);
  return all;
}

// Returns the analytic model's time of the best schedule, or 0 if the model says nothing.
double EstimateOf(const FirstSchedules& schedules) {
  if (schedules.empty() || !std::isfinite(schedules[0].score)) return 0;
  return std::max(0.0, -schedules[0].score);
}

// Returns the results of a task after which the learned model ranks. A job may have the model train
// with fewer.
int OwnResultsOf(const v1::TuneOptions& options, bool knows_others) {
  if (knows_others) return 0;
  const auto min_samples = options.model_parameters().find(std::string(costmodel::kMinSamples));
  if (min_samples == options.model_parameters().end()) return kOwnResults;
  return static_cast<int>(std::min<double>(kOwnResults, min_samples->second));
}

// Returns the models of a task whose cost model the user's process serves. The process also ranks
// before it has learned, in place of the analytic model, so the same share of a round is by chance
// as with the built-in models. Nothing is blended: the process gets the analytic model's estimates.
search::Models ServedModels(ServedSearch& served, int task, const search::Models& models) {
  return {.learned = served.Model(task, models.prior), .prior = served.Model(task, models.prior)};
}

std::vector<std::optional<double>> CostsOf(const TaskHistory& history) {
  std::vector<std::optional<double>> costs_s;
  for (const search::Observation& o : history.observations) {
    costs_s.push_back(o.valid ? std::optional(o.cost_s) : std::nullopt);
  }
  return costs_s;
}

}  // namespace

std::vector<std::optional<SampledReference>> SamplesOf(const CheckedJob& job) {
  std::vector<std::optional<SampledReference>> samples;
  for (const CheckedTask& task : job.tasks) {
    samples.push_back(SampleOf(task, job.spec.options()));
  }
  return samples;
}

StatusOr<JobSearch> MakeJobSearch(const CheckedJob& job, const LeasedDevice& device,
                                  const JobHistory& history, const WarmStart& start,
                                  const search::Models& models, search::KeptAllowance* allowance,
                                  ServedSearch* served,
                                  const std::vector<std::optional<SampledReference>>& samples,
                                  const std::vector<store::TaskRow>& rows) {
  const v1::TuneOptions& options = job.spec.options();
  const std::map<std::string, double> parameters(options.policy_parameters().begin(),
                                                 options.policy_parameters().end());
  // Many tasks teach the model about each other. A model that was trained before ranks from the
  // start, because the user asked for it.
  const bool knows_others =
      start.knows_others || device.tasks.size() >= kTasksThatTeach || !options.cost_model().empty();
  const bool has_served_model = served != nullptr && served->has_model();
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr schedule_template, GivenTemplate(options));
  KILN_ASSIGN_OR_RETURN(const search::PolicyKind* const kind, search::FindPolicy(options.policy()));
  const bool has_first = HasFirstCandidates(options, schedule_template);
  std::vector<FirstSchedules> first(device.tasks.size());
  if (has_first) {
    KILN_ASSIGN_OR_RETURN(first, FirstSchedulesOf(device));
  }
  JobSearch search;
  search.options = OptionsOf(job.spec, has_first, history, served);
  for (size_t i = 0; i < device.tasks.size(); ++i) {
    const training::TaskResults& known = start.of_tasks[i];
    // Each run has another seed: with the same seed the policy would draw the same candidates
    // again, and take the repeats for the end of the space.
    const uint64_t seed =
        SplitSeed(SplitSeed(options.seed(), i),
                  history.trials + known.observations.size() + known.avoid.size());
    const auto rules = served == nullptr ? nullptr : served->Rules(static_cast<int>(i));
    const search::Models of_task =
        has_served_model ? ServedModels(*served, static_cast<int>(i), models) : models;
    KILN_ASSIGN_OR_RETURN(
        auto policy, search::MakePolicy(options.policy(), device.tasks[i], seed,
                                        {.parameters = parameters,
                                         .models = of_task,
                                         .min_own_results = OwnResultsOf(options, knows_others),
                                         .one_of_many = device.tasks.size() >= kTasksThatTeach,
                                         .allowance = allowance,
                                         .rules = rules.get(),
                                         .schedule_template = schedule_template,
                                         .base_model = start.of_templates.of_tasks[i]}));
    const double estimate_s = EstimateOf(first[i]);
    if (has_first) {
      // Loops that take too long as a reference also take too long as a candidate.
      const bool with_unscheduled = !samples[i].has_value();
      search::FirstOptions candidates{.heuristic = std::move(first[i]),
                                      .with_unscheduled = with_unscheduled,
                                      .tells_others = !kind->uses_template};
      if (device.tasks.size() > 1) candidates.results_before_second = kResultsBeforeSecond;
      if (with_unscheduled && i < rows.size()) candidates.reference_s = rows[i].reference_cost_s;
      auto with_first = std::make_unique<search::FirstCandidates>(
          device.tasks[i], std::move(policy), std::move(candidates));
      with_first->AvoidFirst(known.measured);
      policy = std::move(with_first);
    }
    policy->Avoid(known.avoid);
    policy->Observe(known.observations);
    policy->Observe(history.tasks[i].observations);
    search.tasks.push_back(
        {.policy = policy.get(),
         .facts = FactsOf(job.spec.tasks(static_cast<int>(i)), job.tasks[i], estimate_s),
         .earlier_costs_s = CostsOf(history.tasks[i])});
    search.policies.push_back(std::move(policy));
  }
  return search;
}

}  // namespace kiln::scheduler
