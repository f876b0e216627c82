// How well the learned cost model ranks what a database holds: real programs and their times.
//
//   bazel run //tests/bench:cost_model_quality -- --db kiln.db --train 64 [--set max_depth=6]
//
// For each workload: trained on `train` of its records drawn by chance, on those of all other
// workloads ("others"), on both; tested on the rest. Figures: Spearman's rank correlation, and the
// time of the best program among the 10 with the highest scores, relative to the best of the rest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "base/rng.h"
#include "base/status.h"
#include "compiler/dag/text.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/synthetic_testing.h"
#include "search/samples.h"
#include "store/sqlite_store.h"

namespace kiln {
namespace {

struct Options {
  std::string db = "kiln.db", model = "xgb";
  int train = 64, seeds = 3;
  bool estimate = false;  // the model corrects the analytic one
  std::vector<std::string> set;
};

struct Workload {
  std::string key;
  std::unique_ptr<search::Task> task;
  std::vector<search::Measured> measured;
  std::vector<costmodel::Sample> samples;
};

using Clock = std::chrono::steady_clock;
double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

StatusOr<std::vector<Workload>> Read(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
  std::map<std::string, Workload> found;
  KILN_RETURN_IF_ERROR(
      store->ForEachRecord({.include_errors = true}, [&](const store::Record& record) -> Status {
        Workload& workload = found[record.workload_key + record.target];
        if (workload.task == nullptr) {
          KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(record.dag));
          KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(record.target));
          target::HardwareParams hardware = target::DefaultHardware(target, 2);
          if (record.hardware[0] != 0)
            hardware.num_cores = static_cast<int32_t>(record.hardware[0]);
          workload.key = record.workload_key;
          workload.task = std::make_unique<search::Task>(std::move(dag), std::move(target),
                                                         hardware, record.workload_key);
        }
        KILN_ASSIGN_OR_RETURN(auto steps, schedule::ParseSteps(record.steps));
        const bool valid = record.error == store::kNoError;
        workload.measured.push_back({.task = workload.task.get(),
                                     .steps = std::move(steps),
                                     .cost_s = valid ? store::MeanCost(record) : 0,
                                     .sample_task = search::SampleTask(*workload.task)});
        return OkStatus();
      }));
  std::vector<Workload> workloads;
  for (auto& [key, workload] : found) workloads.push_back(std::move(workload));
  return workloads;
}

struct Figures {
  double spearman = 0, top = 0, train_s = 0;
  int count = 0;
  void Add(const Figures& other) {
    spearman += other.spearman, top += other.top, train_s += other.train_s, ++count;
  }
};

StatusOr<Figures> Test(const Options& o, const std::map<std::string, double>& parameters,
                       std::vector<costmodel::Sample> train, std::vector<costmodel::Sample> test) {
  std::shared_ptr<const costmodel::CostModel> analytic;
  if (o.estimate) {
    KILN_ASSIGN_OR_RETURN(analytic, costmodel::AnalyticModel::Make(features::FeatureNames()));
  }
  KILN_ASSIGN_OR_RETURN(
      const auto model,
      costmodel::MakeCostModel(
          o.model, {.seed = 1, .threads = 1, .parameters = parameters, .estimate = analytic}));
  const auto start = Clock::now();
  KILN_RETURN_IF_ERROR(model->Update(std::move(train)));
  Figures figures{.train_s = Seconds(start)};
  std::erase_if(test, [](const costmodel::Sample& sample) { return sample.cost_s <= 0; });
  const std::vector<double> scores = model->Predict(costmodel::Programs(test));
  std::vector<double> throughputs;
  double best = 1e30;
  for (const costmodel::Sample& sample : test) {
    throughputs.push_back(1 / sample.cost_s);
    best = std::min(best, sample.cost_s);
  }
  figures.spearman = costmodel::Spearman(scores, throughputs);
  std::vector<size_t> order(test.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  double found = 1e30;
  for (size_t i = 0; i < std::min<size_t>(10, order.size()); ++i) {
    found = std::min(found, test[order[i]].cost_s);
  }
  figures.top = found / best;
  return figures;
}

Status Run(const Options& o) {
  std::map<std::string, double> parameters;
  for (const std::string& text : o.set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return InvalidArgument("'{}' is not NAME=VALUE", text);
    parameters[text.substr(0, equals)] = std::atof(text.c_str() + equals + 1);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<Workload> workloads, Read(o.db));
  ThreadPool pool(0);
  const auto start = Clock::now();
  int total = 0, rows = 0;
  for (Workload& workload : workloads) {
    workload.samples = search::MakeSamples(workload.measured, pool);
    total += static_cast<int>(workload.samples.size());
    for (const auto& sample : workload.samples) rows += sample.rows->rows();
  }
  fmt::print("{} programs, {} rows, {} columns: features in {:.2f} s\n", total, rows,
             features::NumFeatures(), Seconds(start));
  const char* const kNames[] = {"own", "others", "both"};
  Figures sums[3];
  for (const Workload& workload : workloads) {
    if (workload.samples.size() < static_cast<size_t>(o.train) + 20) continue;
    Figures here[3];
    for (int seed = 0; seed < o.seeds; ++seed) {
      Rng rng(static_cast<uint64_t>(seed));
      std::vector<costmodel::Sample> own = workload.samples;
      Shuffle(rng, own);
      const std::vector<costmodel::Sample> rest(own.begin() + o.train, own.end());
      own.resize(static_cast<size_t>(o.train));
      std::vector<costmodel::Sample> others, both;
      for (const Workload& other : workloads) {
        if (&other != &workload)
          others.insert(others.end(), other.samples.begin(), other.samples.end());
      }
      for (costmodel::Sample& sample : others) sample.prior = true;
      both = others;
      both.insert(both.end(), own.begin(), own.end());
      const std::vector<costmodel::Sample>* const kSets[] = {&own, &others, &both};
      for (int i = 0; i < 3; ++i) {
        if (kSets[i]->empty()) continue;
        if (i > 0 && seed > 0) continue;  // slow, and hardly differs
        KILN_ASSIGN_OR_RETURN(const Figures figures, Test(o, parameters, *kSets[i], rest));
        here[i].Add(figures);
      }
    }
    fmt::print("{:60.60}", workload.key);
    for (int i = 0; i < 3; ++i) {
      const double n = std::max(1, here[i].count);
      here[i] = {here[i].spearman / n, here[i].top / n, here[i].train_s / n};
      fmt::print("  {} {:.3f} x{:.2f}", kNames[i], here[i].spearman, here[i].top);
      sums[i].Add(here[i]);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  for (int i = 0; i < 3; ++i) {
    const double n = std::max(1, sums[i].count);
    fmt::print("mean {:7} spearman {:.3f}  top 10 x{:.3f}  training {:.2f} s\n", kNames[i],
               sums[i].spearman / n, sums[i].top / n, sums[i].train_s / n);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Quality of the cost model on the records of a database");
  kiln::Options o;
  app.add_option("--db", o.db, "the database")->capture_default_str();
  app.add_option("--model", o.model, "the cost model")->capture_default_str();
  app.add_option("--train", o.train, "records of each workload to learn from")
      ->capture_default_str();
  app.add_option("--seeds", o.seeds, "drawings of them")->capture_default_str();
  app.add_flag("--estimate", o.estimate, "the model corrects the analytic one");
  app.add_option("--set", o.set, "parameters of the model, NAME=VALUE");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", kiln::Message(status));
  return 1;
}
