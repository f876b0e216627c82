#include "tests/bench/measured_workloads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/thread_pool.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/samples.h"
#include "store/sqlite_store.h"

namespace kiln {
namespace {

struct Read {
  MeasuredWorkload workload;
  std::vector<search::Measured> measured;
};

target::HardwareParams HardwareOf(const store::Record& record, const target::Target& target) {
  const store::HardwareParams& h = record.hardware;
  target::HardwareParams hardware = target::DefaultHardware(target, 1);
  if (h[0] != 0) hardware.num_cores = static_cast<int32_t>(h[0]);
  if (h[1] != 0) hardware.vector_unit_bytes = static_cast<int32_t>(h[1]);
  if (h[2] != 0) hardware.cache_line_bytes = static_cast<int32_t>(h[2]);
  return hardware;
}

Status AddRecord(const store::Record& record, std::map<std::string, Read>& reads) {
  if (record.error != store::kNoError || record.costs_s.empty()) return OkStatus();
  Read& read = reads[record.workload_key + record.target];
  if (read.workload.task == nullptr) {
    KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(record.dag));
    KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(record.target));
    const target::HardwareParams hardware = HardwareOf(record, target);
    read.workload.key = record.workload_key;
    read.workload.task = std::make_unique<search::Task>(std::move(dag), std::move(target), hardware,
                                                        record.workload_key);
  }
  KILN_ASSIGN_OR_RETURN(auto steps, schedule::ParseSteps(record.steps));
  read.measured.push_back({.task = read.workload.task.get(),
                           .steps = std::move(steps),
                           .cost_s = std::ranges::min(record.costs_s),
                           .sample_task = search::SampleTask(*read.workload.task)});
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<MeasuredWorkload>> ReadMeasuredWorkloads(
    std::span<const std::string> databases, size_t at_least) {
  std::map<std::string, Read> reads;
  for (const std::string& path : databases) {
    KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
    KILN_RETURN_IF_ERROR(store->ForEachRecord(
        {}, [&](const store::Record& record) { return AddRecord(record, reads); }));
  }
  ThreadPool pool(0);
  std::vector<MeasuredWorkload> workloads;
  for (auto& [key, read] : reads) {
    read.workload.samples = search::MakeSamples(read.measured, pool);
    if (read.workload.samples.size() >= at_least) workloads.push_back(std::move(read.workload));
  }
  if (workloads.empty()) return NotFound("no workload has {} programs that worked", at_least);
  return workloads;
}

}  // namespace kiln
