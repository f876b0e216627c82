// Measures the CPU time that the search spends on a trial, by its parts, and how good the schedules
// are that it finds.
//
//   bazel run //tests/bench:search_cost -- --target llvm --trials 64 --seeds 2 [--together]
//
// Each task is a job of its own, or all are one job (--together), with rounds as long as those of a
// job of Kiln. The device is made up: the time of a schedule is the analytic model's estimate,
// times a smooth function of the feature rows that the model must learn, times a few per cent by
// chance. The same seed gives the same device and the same job, so two trees can be compared: the
// digest of all proposals tells whether they decide alike.
//
// --build compiles each candidate of a GPU, and the search learns the CPU seconds of the build. It
// prints the CPU time of the builds, how well a model of them ranks the candidates of a round
// before they are built, and the best time found after so many seconds of search and builds.
// --matrix-units takes four tasks of float16 instead.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

#include "base/numbers/rng.h"
#include "base/process/cpu_time.h"
#include "base/status.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/features/features.h"
#include "compiler/lower/lower.h"
#include "costmodel/analytic_model.h"
#include "costmodel/build_model.h"
#include "costmodel/rank_correlation.h"
#include "search/evolution/transfer.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "search/policies/samples.h"
#include "search/tuning/task_scheduler.h"

namespace kiln {
namespace {

struct Workload {
  const char *op, *args, *epilogue;
  ir::Type dtype = ir::kFloat32;
};
const Workload kWorkloads[] = {
    {"matmul", "512,512,512", ""},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"},
    {"softmax", "128,1000", ""},
    {"depthwise_conv2d_nhwc", "1,28,28,256,3,3,1,1", "bias,relu"},
    {"batch_matmul", "12,128,128,64", ""},
};
const Workload kMatrixUnits[] = {
    {"matmul", "1024,1024,1024", "", ir::kFloat16},
    {"conv2d_nhwc", "1,56,56,256,256,3,3,1,1", "bias,relu", ir::kFloat16},
    {"dense", "128,3072,768", "bias", ir::kFloat16},
    {"attention", "16,2048,64,causal=1", "", ir::kFloat16},
};

struct Options {
  std::string target = "llvm", policy = "sketch.xgb", only, dump;
  int trials = 64, seeds = 1, cores = 4;
  uint64_t seed = 1;
  bool together = false, builds = false, awaited = false, matrix_units = false;
  std::map<std::string, double> parameters, model_parameters;
};

// A device whose times are made up.
class Device {
 public:
  static StatusOr<Device> Make(const search::Task& task, uint64_t seed) {
    Device device;
    KILN_ASSIGN_OR_RETURN(device.model_, costmodel::AnalyticModel::Make(features::FeatureNames()));
    KILN_ASSIGN_OR_RETURN(const auto policy, search::MakePolicy("sketch.random", task, seed, {}));
    KILN_ASSIGN_OR_RETURN(const auto drawn, policy->Propose(kDrawn));
    std::vector<std::vector<double>> points;
    for (const search::Candidate& candidate : drawn) {
      KILN_ASSIGN_OR_RETURN(const FloatMatrix rows, search::FeatureRows(task, candidate.steps));
      points.push_back(device.PointOf(rows));
    }
    device.Standardize(points);
    device.seed_ = seed;
    Rng rng(SplitSeed(seed, 77));
    for (int i = 0; i < kUnits; ++i) {
      for (int j = 0; j < kColumnsOfUnit; ++j)
        device.units_.push_back({PickFrom(rng, device.varying_), 2 * UniformReal(rng) - 1});
      device.weights_.push_back(2 * UniformReal(rng) - 1);
    }
    return device;
  }

  double Seconds(const FloatMatrix& rows, uint64_t hash) const {
    const std::vector<double> point = PointOf(rows);
    double sum = 0;
    for (int i = 0; i < kUnits; ++i) {
      double of_unit = 0;
      for (int j = 0; j < kColumnsOfUnit; ++j) {
        const auto [column, weight] = units_[i * kColumnsOfUnit + j];
        of_unit += weight * (point[column] - mean_[column]) / deviation_[column];
      }
      sum += weights_[i] * std::tanh(of_unit);
    }
    const double chance = static_cast<double>(MixBits(hash ^ seed_) >> 11) * 0x1.0p-53;
    const double estimate_s = -model_->Predict(std::vector<const FloatMatrix*>{&rows})[0];
    return estimate_s * std::exp(kLearned * sum / std::sqrt(kUnits)) * (1 + kChance * chance);
  }

 private:
  static constexpr int kDrawn = 256, kUnits = 24, kColumnsOfUnit = 4;
  static constexpr double kLearned = 0.7, kChance = 0.1;

  // The mean of the rows, each as heavy as its share of the estimated time.
  std::vector<double> PointOf(const FloatMatrix& rows) const {
    std::vector<double> shares = model_->PredictRows(rows), point(rows.columns());
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (int i = 0; i < rows.rows(); ++i) {
      const double share = all == 0 ? 1.0 / rows.rows() : shares[i] / all;
      for (int c = 0; c < rows.columns(); ++c) point[c] += share * rows.row(i)[c];
    }
    return point;
  }

  void Standardize(const std::vector<std::vector<double>>& points) {
    const double n = static_cast<double>(points.size());
    for (size_t c = 0; c < points[0].size(); ++c) {
      double sum = 0, squares = 0;
      for (const auto& point : points) sum += point[c];
      for (const auto& point : points) squares += std::pow(point[c] - sum / n, 2);
      mean_.push_back(sum / n);
      deviation_.push_back(std::sqrt(squares / n));
      if (squares > 1e-6) varying_.push_back(static_cast<int>(c));
    }
  }

  std::unique_ptr<costmodel::AnalyticModel> model_;
  std::vector<double> mean_, deviation_, weights_;
  std::vector<int> varying_;
  std::vector<std::pair<int, double>> units_;
  uint64_t seed_ = 0;
};

// The costs of several jobs, and the times that they found.
struct Totals {
  int trials = 0, rounds = 0;
  double cpu_s = 0, log_best = 0;
  int64_t evaluated = 0;
  int bests = 0;
  uint64_t digest = 0;
  std::vector<double> build_s, rank_correlations;
  double slowest_tenth_s = 0;  // of the builds that were predicted to be the slowest of a round
  std::array<double, search::kNumParts> part_s = {};

  void Add(const search::RoundReport& report) {
    ++rounds;
    evaluated += report.evaluated;
    for (int i = 0; i < search::kNumParts; ++i) part_s[i] += report.part_s[i];
  }
};

// Builds candidates, and learns how long that takes.
class Builds {
 public:
  static StatusOr<Builds> Make(uint64_t seed) {
    Builds builds;
    KILN_ASSIGN_OR_RETURN(builds.model_,
                          costmodel::BuildModel::Make(features::FeatureNames(), seed));
    return builds;
  }

  // Compiles the program; one that the compiler refuses counts, too.
  static StatusOr<double> Seconds(const search::Task& task, const search::Candidate& candidate) {
    KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(task.dag, candidate.steps));
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    const double start = ThreadCpuSeconds();
    const auto cubin = codegen::CompileSource(source, task.target.Option("arch"));
    if (!cubin.ok()) fmt::print(stderr, "{}\n", Message(cubin.status()));
    return ThreadCpuSeconds() - start;
  }

  // Notes the builds of a round, and how well they were predicted.
  Status Note(const std::vector<costmodel::Built>& built, Totals& totals) {
    std::vector<const FloatMatrix*> programs;
    std::vector<double> seconds;
    for (const costmodel::Built& one : built) {
      programs.push_back(one.rows.get());
      seconds.push_back(one.build_s);
    }
    const std::vector<double> predicted = model_->Seconds(programs);
    totals.build_s.insert(totals.build_s.end(), seconds.begin(), seconds.end());
    if (seconds.size() >= 4)
      totals.rank_correlations.push_back(costmodel::Spearman(predicted, seconds));
    std::vector<size_t> order(seconds.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return predicted[i]; });
    for (size_t i = 0; i < (order.size() + 5) / 10; ++i)
      totals.slowest_tenth_s += seconds[order[i]];
    return model_->Learn(built);
  }

 private:
  std::unique_ptr<costmodel::BuildModel> model_;
};

class Job {
 public:
  Job(const Options& options, uint64_t seed) : o_(options), seed_(seed) {}

  Status Run(std::span<const Workload> workloads, Totals& totals) {
    KILN_RETURN_IF_ERROR(Begin(workloads));
    const int trials = o_.trials * static_cast<int>(std::ssize(workloads));
    const bool is_one = workloads.size() == 1;
    search::TaskSchedulerOptions options{.first_round_trials = is_one ? 16 : 8, .seed = seed_};
    if (!is_one) options.opening_trials = 1;
    search::TaskScheduler schedule(facts_, options);
    for (int left = trials; left > 0;) {
      schedule.ExpectTrials(left);
      const std::optional<int> task = schedule.Next();
      if (!task) break;
      const int wanted = std::min(left, static_cast<int>(schedule.RoundTrials(*task)));
      schedule.BeginRound(*task);
      KILN_ASSIGN_OR_RETURN(const int done, Round(*task, wanted, schedule, totals));
      left -= done;
    }
    for (int i = 0; i < schedule.num_tasks(); ++i) {
      if (schedule.latency_s(i) == search::TaskScheduler::kNoResult_s) continue;
      totals.log_best += std::log(schedule.latency_s(i));
      ++totals.bests;
    }
    return OkStatus();
  }

 private:
  Status Begin(std::span<const Workload> workloads) {
    if (o_.builds) {
      KILN_ASSIGN_OR_RETURN(builds_, Builds::Make(seed_));
    }
    KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(o_.target));
    KILN_ASSIGN_OR_RETURN(
        const search::Models models,
        search::MakeModels(o_.policy, seed_, {}, {}, {.parameters = o_.model_parameters}));
    for (const Workload& workload : workloads) {
      KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag,
                            dag::BuildOp(workload.op, workload.args,
                                         {.dtype = workload.dtype,
                                          .epilogue = dag::SplitEpilogue(workload.epilogue)}));
      const std::string key = fmt::format("{} {}", workload.op, workload.args);
      tasks_.push_back(std::make_unique<search::Task>(
          dag, target, target::DefaultHardware(target, o_.cores), key));
      facts_.push_back({.flop_count = dag->flop_count(), .sums = search::SumsKey(*dag)});
      KILN_ASSIGN_OR_RETURN(Device device, Device::Make(*tasks_.back(), seed_));
      devices_.push_back(std::move(device));
      KILN_ASSIGN_OR_RETURN(auto policy, search::MakePolicy(o_.policy, *tasks_.back(), seed_,
                                                            {.parameters = o_.parameters,
                                                             .models = models,
                                                             .min_own_results = 0,
                                                             .one_of_many = workloads.size() >= 4,
                                                             .threads = 1}));
      policies_.push_back(std::move(policy));
    }
    return OkStatus();
  }

  // Proposes, measures and learns. Returns the number of trials, at least 1.
  StatusOr<int> Round(int task, int wanted, search::TaskScheduler& schedule, Totals& totals) {
    search::Policy& policy = *policies_[task];
    const double start = ThreadCpuSeconds();
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy.Propose(wanted));
    totals.cpu_s += ThreadCpuSeconds() - start;
    std::vector<search::Observation> observations;
    std::vector<costmodel::Built> built;
    for (const search::Candidate& candidate : candidates) {
      KILN_ASSIGN_OR_RETURN(const FloatMatrix rows,
                            search::FeatureRows(*tasks_[task], candidate.steps));
      const double seconds = devices_[task].Seconds(rows, candidate.hash);
      schedule.AddResult(task, seconds);
      observations.push_back({candidate, true, seconds, static_cast<uint32_t>(totals.trials++)});
      totals.digest = MixBits(totals.digest ^ candidate.hash);
      if (!o_.builds) continue;
      KILN_ASSIGN_OR_RETURN(const double build_s, Builds::Seconds(*tasks_[task], candidate));
      Dump(build_s, rows);
      if (o_.awaited) observations.back().awaited_build_s = build_s;
      built.push_back({std::make_shared<FloatMatrix>(rows), build_s});
    }
    if (o_.builds) KILN_RETURN_IF_ERROR(builds_->Note(built, totals));
    schedule.EndRound(task);
    if (candidates.empty()) schedule.MarkExhausted(task);
    const double told = ThreadCpuSeconds();
    policy.Observe(observations);
    totals.cpu_s += ThreadCpuSeconds() - told;
    totals.Add(policy.last_round());
    return std::max(1, static_cast<int>(candidates.size()));
  }

  // Appends a build to the file, if one is wanted: its seconds, and its rows as JSON.
  void Dump(double build_s, const FloatMatrix& rows) const {
    if (o_.dump.empty()) return;
    std::ofstream file(o_.dump, std::ios::app);
    file << fmt::format("{}\t{}\t{}\t[", facts_[0].flop_count, seed_, build_s);
    for (int r = 0; r < rows.rows(); ++r)
      file << fmt::format("{}[{}]", r > 0 ? "," : "", fmt::join(rows.row(r), ","));
    file << "]\n";
  }

  const Options& o_;
  const uint64_t seed_;
  std::vector<std::unique_ptr<search::Task>> tasks_;
  std::vector<search::ScheduledTask> facts_;
  std::vector<Device> devices_;
  std::vector<std::unique_ptr<search::Policy>> policies_;
  std::optional<Builds> builds_;
};

void PrintBuilds(const Totals& totals) {
  std::vector<double> sorted = totals.build_s;
  std::ranges::sort(sorted);
  const auto at = [&](double part) {
    return 1e3 * sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
  };
  const double all_s = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  double correlation = 0;
  for (const double one : totals.rank_correlations)
    correlation += one / static_cast<double>(totals.rank_correlations.size());
  fmt::print(
      "  builds, ms: p10 {:.0f}, p50 {:.0f}, p90 {:.0f}, mean {:.0f}; rank correlation of a "
      "round {:.3f}, predicted slowest tenth {:.3f} of the time\n",
      at(0.1), at(0.5), at(0.9), 1e3 * all_s / static_cast<double>(sorted.size()), correlation,
      totals.slowest_tenth_s / all_s);
}

void Print(const std::string& what, const Totals& totals) {
  const double trials = std::max(1, totals.trials);
  fmt::print("{:<44} {:>6} {:>6.0f} {:>8.2f}", what, totals.trials,
             static_cast<double>(totals.evaluated) / trials, 1e3 * totals.cpu_s / trials);
  double known_s = 0;
  for (const double seconds : totals.part_s) {
    known_s += seconds;
    fmt::print(" {:>8.2f}", 1e3 * seconds / trials);
  }
  fmt::print(" {:>8.2f} {:>10.3f} {:016x}\n", 1e3 * (totals.cpu_s - known_s) / trials,
             1e6 * std::exp(totals.log_best / std::max(1, totals.bests)), totals.digest);
  if (!totals.build_s.empty()) PrintBuilds(totals);
  std::fflush(stdout);
}

Status Measure(const Options& o) {
  fmt::print("{:<44} {:>6} {:>6} {:>8}", "CPU ms a trial", "trials", "states", "all");
  for (int i = 0; i < search::kNumParts; ++i)
    fmt::print(" {:>8.8}", search::PartName(static_cast<search::Part>(i)));
  fmt::print(" {:>8} {:>10} digest\n", "rest", "best us");
  std::vector<Workload> workloads;
  const std::span<const Workload> set =
      o.matrix_units ? std::span<const Workload>(kMatrixUnits) : kWorkloads;
  for (const Workload& workload : set) {
    if (fmt::format("{} {}", workload.op, workload.args).find(o.only) != std::string::npos)
      workloads.push_back(workload);
  }
  const size_t each = o.together ? workloads.size() : 1;
  for (size_t i = 0; i < workloads.size(); i += each) {
    Totals totals;
    for (int s = 0; s < o.seeds; ++s) {
      const std::span<const Workload> of_job = std::span(workloads).subspan(i, each);
      KILN_RETURN_IF_ERROR(Job(o, o.seed + static_cast<uint64_t>(s)).Run(of_job, totals));
    }
    Print(o.together ? "together" : fmt::format("{} {}", workloads[i].op, workloads[i].args),
          totals);
  }
  return OkStatus();
}

Status ReadParameters(const std::vector<std::string>& words, std::map<std::string, double>& into) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      return InvalidArgument("a parameter is '{}', expected NAME=VALUE", word);
    into[word.substr(0, equals)] = std::atof(word.c_str() + equals + 1);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("The CPU time that the search spends on a trial, and what it finds");
  kiln::Options o;
  std::vector<std::string> parameters, model_parameters;
  app.add_option("--target", o.target)->capture_default_str();
  app.add_option("--policy", o.policy)->capture_default_str();
  app.add_option("--only", o.only, "only workloads whose text contains this");
  app.add_option("--trials", o.trials, "of each task")->capture_default_str();
  app.add_option("--seed", o.seed, "of the first job and its device")->capture_default_str();
  app.add_option("--seeds", o.seeds, "jobs of each task")->capture_default_str();
  app.add_option("--cores", o.cores, "of the CPU")->capture_default_str();
  app.add_flag("--together", o.together, "all tasks are one job");
  app.add_flag("--build", o.builds, "compile each candidate");
  app.add_option("--dump", o.dump, "file for the seconds of builds, and the rows of the programs");
  app.add_flag("--awaited", o.awaited, "and tell the search so, as if devices waited for builds");
  app.add_flag("--matrix-units", o.matrix_units, "four tasks of float16 instead");
  app.add_option("--parameter", parameters, "NAME=VALUE of the search");
  app.add_option("--model-parameter", model_parameters, "NAME=VALUE of the learned model");
  CLI11_PARSE(app, argc, argv);
  kiln::Status status = kiln::ReadParameters(parameters, o.parameters);
  if (status.ok()) status = kiln::ReadParameters(model_parameters, o.model_parameters);
  if (status.ok()) status = kiln::Measure(o);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
