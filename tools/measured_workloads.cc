#include "tools/measured_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/thread_pool.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "costmodel/synthetic_testing.h"
#include "device/device_model.h"
#include "search/policies/samples.h"
#include "store/sqlite_store.h"

namespace kiln {
namespace {

struct Read {
  MeasuredWorkload workload;
  std::vector<search::Measured> measured;
};

Status AddRecord(const store::Record& record, std::map<std::string, Read>& reads) {
  if (record.error != store::kNoError || record.costs_s.empty()) return OkStatus();
  Read& read = reads[record.workload_id + record.target];
  if (read.workload.task == nullptr) {
    KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(record.dag));
    KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(record.target));
    const HardwareParams hardware =
        KnownOr(HardwareParamsOf(record.hardware), target::DefaultHardware(target, 1));
    read.workload.key = record.workload_key;
    auto model = device::ParseDeviceModel(record.device_model);
    read.workload.task = std::make_unique<search::Task>(
        std::move(dag), std::move(target), hardware, record.workload_id,
        model.ok() ? *std::move(model) : device::DeviceModel());
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

void RankFigures::Add(const RankFigures& other) {
  spearman += other.spearman;
  for (size_t t = 0; t < top.size(); ++t) top[t] += other.top[t];
}

RankFigures RankFigures::DividedBy(double count) const {
  RankFigures divided = *this;
  divided.spearman /= count;
  for (double& t : divided.top) t /= count;
  return divided;
}

std::string RankFigures::Print() const {
  return fmt::format("spearman {:6.3f}  top 1 {:5.3f}  top 8 {:5.3f}  top 64 {:5.3f}", spearman,
                     top[0], top[1], top[2]);
}

RankFigures RanksOf(const std::vector<costmodel::Sample>& samples,
                    const std::vector<double>& scores) {
  std::vector<double> throughputs;
  for (const costmodel::Sample& sample : samples) throughputs.push_back(1 / sample.cost_s.value());
  RankFigures figures{.spearman = costmodel::Spearman(scores, throughputs)};
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const double best = std::ranges::max(throughputs);
  for (size_t t = 0; t < std::size(kTops); ++t) {
    for (size_t i = 0; i < std::min(kTops[t], order.size()); ++i)
      figures.top[t] = std::max(figures.top[t], throughputs[order[i]] / best);
  }
  return figures;
}

}  // namespace kiln
