// Fits what the analytic model takes a GPU for to programs that were measured on one.
//
//   bazel run //tests/bench:fit_analytic_model -- --db a.db,b.db --seconds 200
//
// Prints the figures of the model as it is, the constants found (costmodel::DeviceFacts), and their
// figures: rank correlation, the best of the 1, 8, 64 highest scores relative to the best of all,
// and the loss. That is, within a workload, the variance of the logarithm of estimated over
// measured time, where a program weighs as much as the square of its relative throughput, measured
// or estimated, whichever is more (0.03 at least): fast ones count, and those that look it. Means
// over workloads; besides, estimates that are off by another factor for each workload cost a
// little.
//
// The search is a random one: one to three constants change by a factor, and what is better stays.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/synthetic_testing.h"
#include "tests/bench/measured_workloads.h"

namespace kiln {
namespace {

using costmodel::DeviceFacts;

struct Options {
  std::vector<std::string> dbs = {"kiln.db"};
  double seconds = 120;
  size_t at_least = 200, most = 1200;
  uint64_t seed = 1;
  bool odd_only = false;
};

struct Constant {
  std::string_view name;
  double DeviceFacts::*field;
};
constexpr Constant kConstants[] = {
    {"launch_s", &DeviceFacts::launch_s},
    {"stage_latency", &DeviceFacts::stage_latency},
    {"barrier_latency", &DeviceFacts::barrier_latency},
    {"fma_latency", &DeviceFacts::fma_latency},
    {"l2_bytes_per_cycle", &DeviceFacts::l2_bytes_per_cycle},
    {"l1_bytes_per_cycle", &DeviceFacts::l1_bytes_per_cycle},
    {"wavefront_cycles", &DeviceFacts::wavefront_cycles},
    {"instruction_latency", &DeviceFacts::instruction_latency},
    {"shared_latency", &DeviceFacts::shared_latency},
    {"request_latency", &DeviceFacts::request_latency},
    {"spilled_doubling", &DeviceFacts::spilled_doubling},
    {"spilled_most", &DeviceFacts::spilled_most},
    {"cluster_barrier_latency", &DeviceFacts::cluster_barrier_latency},
    {"remote_bytes_per_cycle", &DeviceFacts::remote_bytes_per_cycle},
};

// What a workload's estimates are like.
struct Figures {
  double loss = 0, bias = 0;
  RankFigures ranks = {};
};
constexpr double kLeastWeight = 0.03, kBiasCosts = 0.05;
// Constants that make no difference stay where they are.
constexpr double kChangeCosts = 1e-4;

Figures Judge(const std::vector<costmodel::Sample>& samples, const std::vector<double>& scores) {
  const size_t n = samples.size();
  double best_s = samples[0].cost_s, best_score = scores[0];
  for (size_t i = 0; i < n; ++i) {
    best_s = std::min(best_s, samples[i].cost_s);
    best_score = std::max(best_score, scores[i]);
  }
  std::vector<double> weights(n), ratios(n);
  double all = 0, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double fast = std::max(best_s / samples[i].cost_s, best_score / scores[i]);
    weights[i] = std::max(kLeastWeight, fast * fast);
    ratios[i] = std::log(-scores[i] / samples[i].cost_s);
    all += weights[i];
    sum += weights[i] * ratios[i];
  }
  Figures figures{.bias = sum / all};
  for (size_t i = 0; i < n; ++i)
    figures.loss += weights[i] * std::pow(ratios[i] - figures.bias, 2) / all;
  return figures;
}

double CostOfChange(const DeviceFacts& facts) {
  double cost = 0;
  for (const Constant& constant : kConstants)
    cost +=
        kChangeCosts * std::pow(std::log(facts.*constant.field / DeviceFacts().*constant.field), 2);
  return cost;
}

class Fit {
 public:
  explicit Fit(std::vector<MeasuredWorkload> workloads) : workloads_(std::move(workloads)) {}

  StatusOr<std::vector<Figures>> Try(const DeviceFacts& facts, bool ranks) {
    KILN_ASSIGN_OR_RETURN(const auto model,
                          costmodel::AnalyticModel::Make(features::FeatureNames(), facts));
    std::vector<Figures> figures(workloads_.size());
    pool_.ParallelFor(static_cast<int64_t>(workloads_.size()), [&](int64_t i) {
      const auto& samples = workloads_[static_cast<size_t>(i)].samples;
      const std::vector<double> scores = model->Predict(costmodel::Programs(samples));
      figures[static_cast<size_t>(i)] = Judge(samples, scores);
      if (ranks) figures[static_cast<size_t>(i)].ranks = RanksOf(samples, scores);
    });
    return figures;
  }

  // Of the workloads that are fitted to.
  static double Loss(const std::vector<Figures>& figures, bool odd_only) {
    double loss = 0, bias = 0, squares = 0, n = 0;
    for (size_t i = odd_only ? 1 : 0; i < figures.size(); i += odd_only ? 2 : 1, ++n) {
      loss += figures[i].loss;
      bias += figures[i].bias;
      squares += figures[i].bias * figures[i].bias;
    }
    return (loss + kBiasCosts * squares) / std::max(1.0, n);
  }

 private:
  const std::vector<MeasuredWorkload> workloads_;
  ThreadPool pool_{0};
};

void Print(std::string_view what, const std::vector<Figures>& all) {
  Figures sum;
  for (const Figures& f : all) {
    sum.loss += f.loss;
    sum.bias += f.bias;
    sum.ranks.Add(f.ranks);
  }
  const auto n = static_cast<double>(all.size());
  fmt::print("{:8} loss {:.4f}  bias {:5.2f}  {}\n", what, sum.loss / n, sum.bias / n,
             sum.ranks.DividedBy(n).Print());
}

Status Run(const Options& o) {
  KILN_ASSIGN_OR_RETURN(auto workloads, ReadMeasuredWorkloads(o.dbs, o.at_least));
  std::erase_if(workloads,
                [](const MeasuredWorkload& workload) { return !workload.task->target.is_gpu(); });
  if (workloads.empty()) return NotFound("no workload was measured on a GPU");
  Rng rng(o.seed);
  for (MeasuredWorkload& workload : workloads) {
    Shuffle(rng, workload.samples);
    if (workload.samples.size() > o.most) workload.samples.resize(o.most);
  }
  const size_t count = workloads.size();
  Fit fit(std::move(workloads));
  DeviceFacts best;
  KILN_ASSIGN_OR_RETURN(std::vector<Figures> figures, fit.Try(best, /*ranks=*/true));
  fmt::print("{} workloads\n", count);
  Print("as it is", figures);
  double loss = Fit::Loss(figures, o.odd_only), width = 0.5;
  const double end_s = Clock::Real().MonotonicSeconds() + o.seconds;
  while (Clock::Real().MonotonicSeconds() < end_s) {
    DeviceFacts facts = best;
    for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) {
      const Constant& constant = kConstants[UniformInt(rng, std::ssize(kConstants))];
      // About normal.
      double step = 0;
      for (int i = 0; i < 3; ++i) step += 2 * UniformReal(rng) - 1;
      facts.*constant.field *= std::exp(width * step);
    }
    KILN_ASSIGN_OR_RETURN(figures, fit.Try(facts, /*ranks=*/false));
    const double found = Fit::Loss(figures, o.odd_only) + CostOfChange(facts);
    width = found < loss ? std::min(1.0, width * 1.3) : std::max(0.03, width * 0.99);
    if (found >= loss) continue;
    loss = found;
    best = facts;
  }
  for (const Constant& constant : kConstants)
    fmt::print("  {:24} {:.3g}\n", constant.name, best.*constant.field);
  KILN_ASSIGN_OR_RETURN(figures, fit.Try(best, /*ranks=*/true));
  Print("fitted", figures);
  if (o.odd_only) {
    std::vector<Figures> others;
    for (size_t i = 0; i < figures.size(); i += 2) others.push_back(figures[i]);
    Print("others", others);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Fits the analytic model to records of a GPU");
  kiln::Options o;
  app.add_option("--db", o.dbs, "the databases")->delimiter(',')->capture_default_str();
  app.add_option("--seconds", o.seconds, "to search for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--at-least", o.at_least, "programs of a workload that counts")
      ->capture_default_str();
  app.add_option("--most", o.most, "programs of a workload, drawn by chance")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the programs drawn, and of the search")
      ->capture_default_str();
  app.add_flag("--odd-only", o.odd_only, "fit to every other workload, and show the others");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", kiln::Message(status));
  return 1;
}
