// Measures the CPU time that the search spends on a trial, by its parts, and how good the schedules
// are that it finds.
//
//   bazel run //tests/bench:search_cost -- --target llvm --trials 64 --seeds 2 [--together]
//
// Each task is a job of its own, or all are one job (--together), with rounds as long as those of a
// job of Kiln. Nothing is built. The device is made up: the time of a schedule is the analytic
// model's estimate, times a smooth function of the feature rows that the model must learn, times
// a few per cent by chance. The same seed gives the same device and the same job, so two trees can
// be compared: the digest of all proposals tells whether they decide alike.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/numbers/rng.h"
#include "base/process/cpu_time.h"
#include "base/status.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "search/evolution/transfer.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "search/policies/samples.h"
#include "search/tuning/task_scheduler.h"

namespace kiln {
namespace {

struct Workload {
  const char *op, *args, *epilogue;
};
constexpr Workload kWorkloads[] = {
    {"matmul", "512,512,512", ""},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu"},
    {"softmax", "128,1000", ""},
    {"depthwise_conv2d_nhwc", "1,28,28,256,3,3,1,1", "bias,relu"},
    {"batch_matmul", "12,128,128,64", ""},
};

struct Options {
  std::string target = "llvm", policy = "sketch.xgb", only;
  int trials = 64, seeds = 1, cores = 4;
  uint64_t seed = 1;
  bool together = false;
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
  std::array<double, search::kNumParts> part_s = {};

  void Add(const search::RoundReport& report) {
    ++rounds;
    evaluated += report.evaluated;
    for (int i = 0; i < search::kNumParts; ++i) part_s[i] += report.part_s[i];
  }
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
    KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(o_.target));
    KILN_ASSIGN_OR_RETURN(
        const search::Models models,
        search::MakeModels(o_.policy, seed_, {}, {}, {.parameters = o_.model_parameters}));
    for (const Workload& workload : workloads) {
      KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag,
                            dag::BuildOp(workload.op, workload.args,
                                         {.epilogue = dag::SplitEpilogue(workload.epilogue)}));
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
    for (const search::Candidate& candidate : candidates) {
      KILN_ASSIGN_OR_RETURN(const FloatMatrix rows,
                            search::FeatureRows(*tasks_[task], candidate.steps));
      const double seconds = devices_[task].Seconds(rows, candidate.hash);
      schedule.AddResult(task, seconds);
      observations.push_back({candidate, true, seconds, static_cast<uint32_t>(totals.trials++)});
      totals.digest = MixBits(totals.digest ^ candidate.hash);
    }
    schedule.EndRound(task);
    if (candidates.empty()) schedule.MarkExhausted(task);
    const double told = ThreadCpuSeconds();
    policy.Observe(observations);
    totals.cpu_s += ThreadCpuSeconds() - told;
    totals.Add(policy.last_round());
    return std::max(1, static_cast<int>(candidates.size()));
  }

  const Options& o_;
  const uint64_t seed_;
  std::vector<std::unique_ptr<search::Task>> tasks_;
  std::vector<search::ScheduledTask> facts_;
  std::vector<Device> devices_;
  std::vector<std::unique_ptr<search::Policy>> policies_;
};

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
  std::fflush(stdout);
}

Status Measure(const Options& o) {
  fmt::print("{:<44} {:>6} {:>6} {:>8}", "CPU ms a trial", "trials", "states", "all");
  for (int i = 0; i < search::kNumParts; ++i)
    fmt::print(" {:>8.8}", search::PartName(static_cast<search::Part>(i)));
  fmt::print(" {:>8} {:>10} digest\n", "rest", "best us");
  std::vector<Workload> workloads;
  for (const Workload& workload : kWorkloads) {
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
  app.add_option("--parameter", parameters, "NAME=VALUE of the search");
  app.add_option("--model-parameter", model_parameters, "NAME=VALUE of the learned model");
  CLI11_PARSE(app, argc, argv);
  kiln::Status status = kiln::ReadParameters(parameters, o.parameters);
  if (status.ok()) status = kiln::ReadParameters(model_parameters, o.model_parameters);
  if (status.ok()) status = kiln::Measure(o);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
