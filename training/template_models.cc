#include "training/template_models.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/log.h"
#include "compiler/dag/workload_id.h"
#include "search/policies/template_features.h"
#include "search/policies/template_history.h"
#include "search/templates/point_origin.h"
#include "search/templates/shipped.h"
#include "training/earlier_records.h"
#include "training/left_out.h"
#include "training/record_tasks.h"

namespace kiln::training {
namespace {

constexpr size_t kNamedWorkloads = 4;

// A template, and the tasks of the job that search it.
struct Searched {
  search::TemplatePtr schedule_template;
  std::vector<size_t> tasks;
  std::set<std::string> workload_ids;  // ids of the tasks' workloads
};

// Returns the searched templates by name, without hand-written kernels: these have no loops that a
// model could compare.
StatusOr<std::map<std::string, Searched>> TemplatesOf(const search::TemplatePtr& given,
                                                      std::span<const search::Task> tasks) {
  std::map<std::string, Searched> all;
  for (size_t i = 0; i < tasks.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const search::TemplatePtr found,
                          search::TemplateFor(given, tasks[i].dag, tasks[i].target.is_gpu()));
    if (found->kind() != "template") continue;
    Searched& searched = all[std::string(found->name())];
    searched.schedule_template = found;
    searched.tasks.push_back(i);
    searched.workload_ids.insert(dag::WorkloadId(*tasks[i].dag));
  }
  return all;
}

// Groups the records of points of the templates, by the template's name.
std::map<std::string, RecordGroups> GroupsOf(std::span<const store::Record> records,
                                             std::string_view job_id,
                                             const std::map<std::string, Searched>& templates) {
  std::map<std::string, RecordGroups> groups;
  for (const store::Record& record : records) {
    if (record.job_id == job_id || record.workload_id.empty() || !WhyLeftOut(record).empty())
      continue;
    const auto origin = search::ParsePointOrigin(record.origin);
    if (!origin || origin->kind != "template" || !templates.contains(origin->name)) continue;
    groups[origin->name][{record.workload_id, record.device}].push_back(&record);
  }
  return groups;
}

// Returns the description of the record's task in its job, or the start of its workload id.
StatusOr<std::string> WorkloadOf(store::Store& store, const store::Record& record) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::TaskRow> rows, store.TasksOfJob(record.job_id));
  const auto row = std::ranges::find(rows, record.task_index, &store::TaskRow::index);
  if (row != rows.end() && !row->description.empty()) return row->description;
  return record.workload_id.substr(0, 12);
}

// Names the workloads with the most points first: "dense 64,64,64 (40), dense 96,64,64 (24) and 3
// others".
StatusOr<std::string> WorkloadsText(store::Store& store, const RecordGroups& groups,
                                    const std::vector<size_t>& points) {
  struct Workload {
    const store::Record* record;
    size_t points;
  };
  std::map<std::string_view, Workload> by_id;  // results of all devices together
  size_t group = 0;
  for (const auto& [key, records] : groups) {
    if (const size_t count = points[group++]; count > 0)
      by_id.try_emplace(key.first, Workload{records.front(), 0}).first->second.points += count;
  }
  std::vector<Workload> workloads;
  for (const auto& [id, workload] : by_id) workloads.push_back(workload);
  std::ranges::stable_sort(workloads, std::ranges::greater(), &Workload::points);
  std::vector<std::string> texts;
  for (const Workload& workload : workloads) {
    if (texts.size() == kNamedWorkloads) break;
    KILN_ASSIGN_OR_RETURN(const std::string name, WorkloadOf(store, *workload.record));
    texts.push_back(fmt::format("{} ({})", name, workload.points));
  }
  const size_t others = workloads.size() - texts.size();
  return fmt::format("{}{}", fmt::join(texts, ", "),
                     others > 0 ? fmt::format(" and {} others", others) : "");
}

class Gathering {
 public:
  Gathering(store::Store& store, std::string_view job_id, const search::Parameters& parameters,
            ThreadPool& pool, const EarlierResultsOptions& options)
      : store_(store), job_id_(job_id), parameters_(parameters), pool_(pool), options_(options) {}

  Status Learn(const std::string& name, const Searched& searched, const RecordGroups& groups,
               TemplateModels& results) {
    if (!search::FeaturesOf(parameters_).carries_over()) {
      AddNoticeOfUnusedKnobs(name, searched, groups, results);
      return OkStatus();
    }
    const RecordList chosen = ChooseFromEachGroup(groups, options_.samples);
    RecordTasks table(options_.stop);
    const std::vector<search::EarlierTrial> trials = TrialsOf(chosen, groups, table);
    const StatusOr<search::TemplateHistory> history = search::LearnHistory(
        *searched.schedule_template, parameters_, trials, groups.size(), pool_, options_.stop);
    if (options_.stop.stop_requested()) return Cancelled("stopped");
    if (!history.ok()) {  // then the search learns from its own results alone
      LogWarn("job {}: no model of template {}: {}", job_id_, name, Message(history.status()));
      return OkStatus();
    }
    for (const size_t task : searched.tasks) results.of_tasks[task] = history->model;
    if (history->total() == 0) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const std::string workloads,
                          WorkloadsText(store_, groups, history->points));
    results.notices.push_back(
        history->model != nullptr
            ? fmt::format("template {}: the search begins with a model of {} earlier results: {}",
                          name, history->total(), workloads)
            : fmt::format("template {}: {} earlier results are too few for a model to begin with "
                          "(template_least_history is {}): {}",
                          name, history->total(), parameters_.template_least_history, workloads));
    return OkStatus();
  }

 private:
  static void AddNoticeOfUnusedKnobs(const std::string& name, const Searched& searched,
                                     const RecordGroups& groups, TemplateModels& results) {
    size_t others = 0;
    for (const auto& [key, records] : groups)
      others += searched.workload_ids.contains(std::string(key.first)) ? 0 : records.size();
    if (others == 0) return;
    results.notices.push_back(fmt::format(
        "template {}: {} earlier results of other computations are not learned from, as knob "
        "values alone say nothing of another one; with --parameter template_curve_features=1 they "
        "are",
        name, others));
  }

  std::vector<search::EarlierTrial> TrialsOf(const RecordList& chosen, const RecordGroups& groups,
                                             RecordTasks& table) {
    std::map<RecordGroups::key_type, size_t> numbers;
    for (const auto& [key, records] : groups) numbers.emplace(key, numbers.size());
    std::vector<std::optional<Steps>> steps = ParseAll(job_id_, chosen, options_.stop, pool_);
    std::vector<search::EarlierTrial> trials;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const store::Record& record = *chosen[i];
      if (options_.stop.stop_requested()) break;
      const search::Task* const task = table.Find(record);
      if (task == nullptr || !steps[i].has_value()) continue;
      trials.push_back({.task = task,
                        .origin = record.origin,
                        .steps = *std::move(steps[i]),
                        .cost_s = CostOf(record),
                        .group = numbers.at({record.workload_id, record.device})});
    }
    return trials;
  }

  store::Store& store_;
  const std::string_view job_id_;
  const search::Parameters& parameters_;
  ThreadPool& pool_;
  const EarlierResultsOptions& options_;
};

}  // namespace

StatusOr<TemplateModels> LearnTemplateModels(store::Store& store, std::string_view job_id,
                                             const search::TemplatePtr& given,
                                             const search::Parameters& parameters,
                                             std::span<const search::Task> tasks, ThreadPool& pool,
                                             const EarlierResultsOptions& gather) {
  TemplateModels results;
  results.of_tasks.resize(tasks.size());
  if (!parameters.template_history) return results;
  KILN_ASSIGN_OR_RETURN(const auto templates, TemplatesOf(given, tasks));
  if (templates.empty()) return results;
  std::set<std::string> targets;
  for (const search::Task& task : tasks) targets.insert(target::PrintTarget(task.target));
  std::vector<store::Record> records;
  for (const std::string& target : targets) {
    KILN_ASSIGN_OR_RETURN(std::vector<store::Record> found,
                          store.LatestRecords(target, gather.latest_records));
    std::ranges::move(found, std::back_inserter(records));
  }
  Gathering gathering(store, job_id, parameters, pool, gather);
  for (const auto& [name, groups] : GroupsOf(records, job_id, templates))
    KILN_RETURN_IF_ERROR(gathering.Learn(name, templates.at(name), groups, results));
  for (const std::string& notice : results.notices) LogInfo("job {}: {}", job_id, notice);
  return results;
}

}  // namespace kiln::training
