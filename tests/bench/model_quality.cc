// How well cost models rank what databases hold: real programs and their times.
//
//   bazel run //tests/bench:model_quality -- --db kiln.db --models random,analytic,xgb
//
// For each workload with enough successful records, and each model: Spearman's rank correlation of
// scores and throughputs; the share of pairs in the right order; and, when the 1, 8, 64 programs
// with the highest scores are measured, the best throughput found relative to the best of all. A
// model that learns is judged by cross-validation: a score comes from a model that has seen the
// other folds of its workload. One that does not learn scores all at once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "base/rng.h"
#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/features/features.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/synthetic_testing.h"
#include "search/task.h"
#include "store/sqlite_store.h"

namespace kiln {
namespace {

struct Options {
  std::vector<std::string> dbs = {"kiln.db"};
  std::vector<std::string> models = {"random", "analytic", "xgb"};
  int folds = 4, at_least = 40;
  std::string dump;  // folder for the rows as text
};

struct Workload {
  std::string key;
  std::unique_ptr<search::Task> task;
  std::vector<costmodel::Sample> samples;
};

using Workloads = std::map<std::string, Workload>;

target::HardwareParams HardwareOf(const store::Record& record, const target::Target& target) {
  const store::HardwareParams& h = record.hardware;
  target::HardwareParams hardware = target::DefaultHardware(target, 1);
  if (h[0] != 0) hardware.num_cores = static_cast<int32_t>(h[0]);
  if (h[1] != 0) hardware.vector_unit_bytes = static_cast<int32_t>(h[1]);
  if (h[2] != 0) hardware.cache_line_bytes = static_cast<int32_t>(h[2]);
  return hardware;
}

Status Read(const std::string& path, Workloads& workloads) {
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
  return store->ForEachRecord({}, [&](const store::Record& record) -> Status {
    if (record.error != store::kNoError) return OkStatus();
    Workload& workload = workloads[record.workload_key + record.target];
    if (workload.task == nullptr) {
      KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(record.dag));
      KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(record.target));
      const target::HardwareParams hardware = HardwareOf(record, target);
      workload.key = record.workload_key;
      workload.task = std::make_unique<search::Task>(std::move(dag), std::move(target), hardware,
                                                     record.workload_key);
    }
    KILN_ASSIGN_OR_RETURN(auto steps, schedule::ParseSteps(record.steps));
    // Other processes only ever make a run longer.
    const double cost = *std::min_element(record.costs_s.begin(), record.costs_s.end());
    KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload.task->dag, steps));
    const target::Target& target = workload.task->target;
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = target.is_gpu()}));
    workload.samples.push_back(
        {.rows = std::make_shared<const FloatMatrix>(
             features::ExtractFeatures(program, target, workload.task->hardware)),
         .task = 1,  // samples of different workloads never meet
         .cost_s = cost});
    return OkStatus();
  });
}

StatusOr<std::unique_ptr<costmodel::CostModel>> MakeModel(const std::string& name) {
  if (name == "analytic") return costmodel::AnalyticModel::Make(features::FeatureNames());
  return costmodel::MakeCostModel(
      name, {.seed = 1, .feature_version = features::kFeatureVersion, .threads = 1});
}

// By cross-validation: sample i is in fold i % folds (they are shuffled).
StatusOr<std::vector<double>> Scores(const std::string& name, int folds,
                                     const std::vector<costmodel::Sample>& samples) {
  if (name == "analytic" || name == "random") {
    KILN_ASSIGN_OR_RETURN(const auto model, MakeModel(name));
    return model->Predict(costmodel::Programs(samples));
  }
  std::vector<double> scores(samples.size());
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<costmodel::Sample> train, test;
    for (size_t i = 0; i < samples.size(); ++i)
      (static_cast<int>(i % folds) == fold ? test : train).push_back(samples[i]);
    KILN_ASSIGN_OR_RETURN(const auto model, MakeModel(name));
    KILN_RETURN_IF_ERROR(model->Update(std::move(train)));
    const std::vector<double> predicted = model->Predict(costmodel::Programs(test));
    for (size_t i = 0; i < predicted.size(); ++i) scores[i * folds + fold] = predicted[i];
  }
  return scores;
}

constexpr int kTops[] = {1, 8, 64};

struct Figures {
  double spearman = 0, pairs = 0;
  std::array<double, 3> top = {};
};

Figures Judge(const std::vector<double>& scores, const std::vector<costmodel::Sample>& samples) {
  Figures figures;
  std::vector<double> throughputs;
  for (const costmodel::Sample& sample : samples) throughputs.push_back(1 / sample.cost_s);
  figures.spearman = costmodel::Spearman(scores, throughputs);
  double right = 0, all = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (throughputs[i] == throughputs[j]) continue;
      ++all;
      if (scores[i] == scores[j]) right += 0.5;
      if ((scores[i] > scores[j]) == (throughputs[i] > throughputs[j]) && scores[i] != scores[j])
        ++right;
    }
  }
  figures.pairs = right / std::max(1.0, all);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const double best = *std::max_element(throughputs.begin(), throughputs.end());
  for (size_t t = 0; t < std::size(kTops); ++t) {
    for (size_t i = 0; i < std::min<size_t>(kTops[t], order.size()); ++i)
      figures.top[t] = std::max(figures.top[t], throughputs[order[i]] / best);
  }
  return figures;
}

// One line per program: cost in microseconds, its number, then the columns of each row.
void Dump(const std::string& path, const std::vector<costmodel::Sample>& samples) {
  std::ofstream out(path);
  out << "program\tcost_us";
  for (std::string_view name : features::FeatureNames()) out << "\t" << name;
  out << "\n";
  for (size_t i = 0; i < samples.size(); ++i) {
    for (int r = 0; r < samples[i].rows->rows(); ++r) {
      out << i << "\t" << samples[i].cost_s * 1e6;
      for (float value : samples[i].rows->row(r)) out << "\t" << value;
      out << "\n";
    }
  }
}

void Print(std::string_view what, const Figures& f) {
  fmt::print(
      "  {:10} spearman {:6.3f}  pairs {:5.3f}  top 1 {:5.3f}  top 8 {:5.3f}  top 64 {:5.3f}\n",
      what, f.spearman, f.pairs, f.top[0], f.top[1], f.top[2]);
  std::fflush(stdout);
}

Status Run(const Options& o) {
  Workloads workloads;
  for (const std::string& path : o.dbs) KILN_RETURN_IF_ERROR(Read(path, workloads));
  std::map<std::string, Figures> sums;
  int count = 0;
  for (auto& [key, workload] : workloads) {
    if (static_cast<int>(workload.samples.size()) < o.at_least) continue;
    Rng rng(1);
    Shuffle(rng, workload.samples);
    fmt::print("{} on {}: {} programs\n", workload.key,
               target::TargetKindName(workload.task->target.kind), workload.samples.size());
    if (!o.dump.empty()) Dump(fmt::format("{}/{}.tsv", o.dump, count), workload.samples);
    ++count;
    for (const std::string& name : o.models) {
      KILN_ASSIGN_OR_RETURN(const auto scores, Scores(name, o.folds, workload.samples));
      const Figures figures = Judge(scores, workload.samples);
      Print(name, figures);
      Figures& sum = sums[name];
      sum.spearman += figures.spearman;
      sum.pairs += figures.pairs;
      for (size_t t = 0; t < std::size(kTops); ++t) sum.top[t] += figures.top[t];
    }
  }
  if (count == 0) return NotFound("no workload has {} successful records", o.at_least);
  fmt::print("mean of {} workloads\n", count);
  for (const std::string& name : o.models) {
    Figures mean = sums[name];
    mean.spearman /= count;
    mean.pairs /= count;
    for (double& top : mean.top) top /= count;
    Print(name, mean);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Quality of cost models on the records of databases");
  kiln::Options o;
  app.add_option("--db", o.dbs, "the databases")->delimiter(',')->capture_default_str();
  app.add_option("--models", o.models, "analytic, or a name of the cost models")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--folds", o.folds, "of the cross-validation")->check(CLI::Range(2, 100));
  app.add_option("--at-least", o.at_least, "records of a workload that counts");
  app.add_option("--dump", o.dump, "folder for the feature rows, as tables");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
