#include "training/training_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash/digest.h"
#include "base/numbers/rng.h"
#include "compiler/schedule/step.h"
#include "search/policies/samples.h"
#include "training/left_out.h"

namespace kiln::training {
namespace {

std::string NameOf(const costmodel::ModelTask& task) {
  return fmt::format("{}\n{}\n{}", task.workload_id, task.target, task.device);
}

}  // namespace

std::vector<costmodel::Sample> SamplesOf(const TrainingSet& set) {
  std::vector<costmodel::Sample> samples;
  for (const TrainingProgram& program : set.programs) {
    samples.push_back({.rows = program.rows,
                       .task = Xxh3(NameOf(set.tasks[static_cast<size_t>(program.task)])),
                       .cost_s = program.cost_s});
  }
  return samples;
}

TrainingSetReader::TrainingSetReader(store::Store& store, TrainingSetOptions options)
    : store_(store), options_(std::move(options)), tasks_(options_.stop) {}

void TrainingSetReader::LeaveOut(std::string_view reason, int64_t record, std::string_view detail) {
  LeftOut& left_out = set_.left_out[std::string(reason)];
  if (++left_out.records > 1) return;
  left_out.first = fmt::format("record {}{}{}", record, detail.empty() ? "" : ": ", detail);
}

StatusOr<const store::Computation*> TrainingSetReader::ComputationOf(const store::Record& record) {
  const auto [at, is_new] = meanings_.try_emplace(record.workload_key);
  Meaning& meaning = at->second;
  if (is_new) {
    KILN_ASSIGN_OR_RETURN(const auto bound, store_.BoundTo(record.workload_key));
    meaning.bound = bound.has_value();
    if (bound.has_value()) {
      meaning.bearers = {*bound};
    } else {
      KILN_ASSIGN_OR_RETURN(meaning.bearers, store_.ComputationsOfKey(record.workload_key));
    }
  }
  // A record of a bound key either has the bearer's identity, or does not fit the bearer.
  if (record.workload_id.empty()) {
    const bool is_one = !meaning.bound && meaning.bearers.size() == 1;
    return is_one ? &meaning.bearers[0] : nullptr;
  }
  const auto bearer =
      std::ranges::find(meaning.bearers, record.workload_id, &store::Computation::id);
  return bearer == meaning.bearers.end() ? nullptr : &*bearer;
}

Status TrainingSetReader::Add(const store::Record& record) {
  ++set_.records;
  if (const std::string_view reason = WhyLeftOut(record); !reason.empty()) {
    LeaveOut(reason, record.id, record.message);
  } else if (!record.dag.empty()) {
    AddKnown(record);
  } else {
    KILN_ASSIGN_OR_RETURN(const store::Computation* const computation, ComputationOf(record));
    if (computation == nullptr) {
      LeaveOut(kNoComputation, record.id, record.workload_key);
      return OkStatus();
    }
    store::Record whole = record;
    whole.workload_id = computation->id;
    whole.dag = computation->dag;
    AddKnown(whole);
  }
  return OkStatus();
}

void TrainingSetReader::AddKnown(const store::Record& record) {
  const search::Task* const task = tasks_.Find(record);
  if (task == nullptr) return LeaveOut(kNoTask, record.id, record.target);
  const Status costs = CheckMeasuredCosts(record, *task);
  if (!costs.ok()) return LeaveOut(kImplausible, record.id, Message(costs));
  costmodel::ModelTask about = {.workload_id = store::WorkloadName(record),
                                .workload_key = record.workload_key,
                                .target = record.target,
                                .device = record.device};
  const auto [at, is_new] = groups_.try_emplace(NameOf(about));
  Group& group = at->second;
  if (is_new) {
    group.about = std::move(about);
    group.device = task->device;
    group.gpu = task->target.is_gpu();
  }
  by_size_.erase({group.size(), at->first});
  const bool worked = record.error == store::kNoError;
  Keep(group, {.record = record.id,
               .steps = record.steps,
               .cost_s = worked ? std::optional(store::Cost(record)) : std::nullopt,
               .task = task});
  by_size_.insert({group.size(), at->first});
  if (++kept_ > options_.programs) DropOne();
}

void TrainingSetReader::Keep(Group& group, Kept kept) {
  const auto before = [](const Kept& a, const Kept& b) {
    return std::pair(*a.cost_s, a.record) < std::pair(*b.cost_s, b.record);
  };
  if (kept.cost_s.has_value()) {
    if (!group.fastest.has_value()) {
      group.fastest = std::move(kept);
      return;
    }
    if (before(kept, *group.fastest)) std::swap(*group.fastest, kept);
  }
  const uint64_t chance = SplitSeed(options_.seed, static_cast<uint64_t>(kept.record));
  group.others.emplace(chance, std::move(kept));
}

// Drops the record of the largest task that comes last in the random order, but never the task's
// fastest one while there are others.
void TrainingSetReader::DropOne() {
  const auto largest = std::prev(by_size_.end());
  const auto at = groups_.find(largest->second);
  Group& group = at->second;
  by_size_.erase(largest);
  --kept_;
  if (group.others.empty()) {  // there are more tasks than programs are kept
    groups_.erase(at);
    return;
  }
  group.others.erase(std::prev(group.others.end()));
  by_size_.insert({group.size(), at->first});
}

StatusOr<TrainingSet> TrainingSetReader::Finish(ThreadPool& pool) {
  struct Candidate {
    const Group* group;
    const Kept* kept;
    StatusOr<FloatMatrix> rows = Cancelled("stopped");
  };
  std::vector<Candidate> candidates;
  for (const auto& [name, group] : groups_) {
    if (group.fastest.has_value()) candidates.push_back({&group, &*group.fastest});
    for (const auto& [order, kept] : group.others) candidates.push_back({&group, &kept});
  }
  std::ranges::sort(candidates, {}, [](const Candidate& c) { return c.kept->record; });
  pool.ParallelFor(static_cast<int64_t>(candidates.size()), [&](int64_t i) {
    Candidate& candidate = candidates[static_cast<size_t>(i)];
    if (options_.stop.stop_requested()) return;
    const auto steps = schedule::ParseSteps(candidate.kept->steps);
    candidate.rows = steps.ok() ? search::FeatureRows(*candidate.kept->task, *steps)
                                : StatusOr<FloatMatrix>(steps.status());
  });
  if (options_.stop.stop_requested()) return Cancelled("stopped");
  std::map<const Group*, std::vector<TrainingProgram>> by_group;
  for (Candidate& candidate : candidates) {
    if (!candidate.rows.ok()) {
      LeaveOut(kNoSchedule, candidate.kept->record, Message(candidate.rows.status()));
      continue;
    }
    by_group[candidate.group].push_back(
        {.record = candidate.kept->record,
         .rows = std::make_shared<const FloatMatrix>(*std::move(candidate.rows)),
         .cost_s = candidate.kept->cost_s});
  }
  std::vector<std::pair<const Group*, std::vector<TrainingProgram>>> groups(
      std::make_move_iterator(by_group.begin()), std::make_move_iterator(by_group.end()));
  std::ranges::sort(groups, [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                              : NameOf(a.first->about) < NameOf(b.first->about);
  });
  for (auto& [group, programs] : groups) {
    costmodel::ModelTask& task = set_.tasks.emplace_back(group->about);
    set_.devices.push_back(group->device);
    set_.gpu.push_back(group->gpu);
    for (TrainingProgram& program : programs) {
      program.task = static_cast<int>(set_.tasks.size() - 1);
      ++task.programs;
      if (!program.cost_s.has_value()) ++task.failed;
      if (program.cost_s.has_value() && (task.best_s == 0 || *program.cost_s < task.best_s))
        task.best_s = *program.cost_s;
      set_.programs.push_back(std::move(program));
    }
  }
  std::ranges::sort(set_.programs, {}, &TrainingProgram::record);
  return std::move(set_);
}

}  // namespace kiln::training
