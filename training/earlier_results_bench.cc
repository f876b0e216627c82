// Measures how long the warm start of a job takes, and how much each part takes: for each workload
// of a database, as if a new job of that workload began.
//   bazel run //training:earlier_results_bench -- DB [WORKLOADS]
#include <fmt/format.h>

#include <cstdlib>

#include "base/clock.h"
#include "compiler/dag/text.h"
#include "search/policies/models.h"
#include "store/sqlite_store.h"
#include "training/earlier_results.h"

namespace kiln::training {
namespace {

Status Bench(store::Store& store, const store::Record& record) {
  const auto now_s = [] { return Clock::Real().MonotonicSeconds(); };
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(record.dag));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(record.target));
  const search::Task task(dag, target, target::DefaultHardware(target, 1), record.workload_id);
  KILN_ASSIGN_OR_RETURN(const search::Models models, search::MakeModels("sketch.xgb", 1));
  const double start_s = now_s();
  ThreadPool pool(0);
  KILN_ASSIGN_OR_RETURN(
      EarlierResults results,
      GatherEarlierResults(store, "new", std::span(&task, 1), record.device, pool));
  const double gathered_s = now_s();
  const size_t samples = results.of_others.size();
  KILN_RETURN_IF_ERROR(models.learned->Update(std::move(results.of_others)));
  const double trained_s = now_s();
  KILN_ASSIGN_OR_RETURN(const auto policy,
                        search::MakePolicy("sketch.xgb", task, 1, {.models = models}));
  policy->Avoid(results.of_tasks[0].avoid);
  policy->Observe(results.of_tasks[0].observations);
  const double observed_s = now_s();
  KILN_RETURN_IF_ERROR(policy->Propose(16).status());
  const search::RoundReport& round = policy->last_round();
  fmt::print(
      "{} states and {} samples: {:.2f} s gathering, {:.2f} s training, {:.2f} s observing; first "
      "round {:.2f} s, {:.2f} s of it training\n",
      results.of_tasks[0].observations.size() + results.of_tasks[0].avoid.size(), samples,
      gathered_s - start_s, trained_s - gathered_s, observed_s - trained_s, round.wall_s,
      round.part_s[static_cast<int>(search::Part::kTrain)]);
  return OkStatus();
}

Status BenchAll(const std::string& path, int most) {
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
  std::map<std::string, store::Record> workloads;
  int64_t records = 0;
  KILN_RETURN_IF_ERROR(store->ForEachRecord({.include_errors = true}, [&](const auto& record) {
    ++records;
    workloads.emplace(store::WorkloadName(record), record);
    return OkStatus();
  }));
  fmt::print("{} records of {} workloads, {} CPUs\n", records, workloads.size(), AvailableCpus());
  for (const auto& [key, record] : workloads) {
    if (most-- <= 0) break;
    KILN_RETURN_IF_ERROR(Bench(*store, record));
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln::training

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: earlier_results_bench DB [WORKLOADS]\n");
    return 1;
  }
  const kiln::Status status = kiln::training::BenchAll(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
