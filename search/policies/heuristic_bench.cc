// Measures the cost of choosing a schedule without measuring, and the quality by the model's
// estimate.
//
//   bazel run //search/policies:heuristic_bench -- "cuda -arch=sm_90" heuristic_draws=64
//
// Prints for each workload of kiln conformance the CPU milliseconds of one thread that the policy
// `heuristic` takes from the declaration to its first proposal (the smallest of three), the number
// of schedules that it lowered, and the predicted time; at the end the means. Words with "=" are
// parameters.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/process/cpu_time.h"
#include "compiler/dag/ops/known_workloads.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

constexpr int kTries = 3;

struct Sums {
  double log_ms = 0, log_predicted = 0, most_ms = 0;
  int count = 0;
};

Status Try(const dag::KnownWorkload& workload, const target::Target& target,
           const std::map<std::string, double>& parameters, Sums& sums) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, workload.Build());
  const Task task(dag, target, target::DefaultHardware(target, /*host_cores=*/2), "[]");
  double least_s = 1e30, predicted_s = 0;
  int64_t evaluated = 0;
  for (int i = 0; i < kTries; ++i) {
    const double start = ThreadCpuSeconds();
    KILN_ASSIGN_OR_RETURN(const Models models, MakeModels("heuristic", 1));
    KILN_ASSIGN_OR_RETURN(const auto policy,
                          MakePolicy("heuristic", task, 1,
                                     {.parameters = parameters, .models = models, .threads = 1}));
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(1));
    least_s = std::min(least_s, ThreadCpuSeconds() - start);
    predicted_s = -candidates.at(0).score;
    evaluated = policy->last_round().evaluated;
  }
  fmt::print("{:60} {:6.1f} ms {:5} schedules {:12.2f} us predicted\n", workload.Description(),
             1e3 * least_s, evaluated, 1e6 * predicted_s);
  sums.log_ms += std::log(1e3 * least_s);
  sums.log_predicted += std::log(1e6 * predicted_s);
  sums.most_ms = std::max(sums.most_ms, 1e3 * least_s);
  ++sums.count;
  return OkStatus();
}

Status Run(int argc, char** argv) {
  std::string text = "llvm";
  std::map<std::string, double> parameters;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (word.find(' ') != std::string::npos || equals == std::string::npos) {
      text = word;
    } else {
      parameters[word.substr(0, equals)] = std::atof(word.c_str() + equals + 1);
    }
  }
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  Sums sums;
  for (const dag::KnownWorkload& workload : dag::ConformanceWorkloads())
    KILN_RETURN_IF_ERROR(Try(workload, target, parameters, sums));
  fmt::print("geometric means: {:.1f} ms (at most {:.1f}), {:.2f} us predicted\n",
             std::exp(sums.log_ms / sums.count), sums.most_ms,
             std::exp(sums.log_predicted / sums.count));
  return OkStatus();
}

}  // namespace
}  // namespace kiln::search

int main(int argc, char** argv) {
  const kiln::Status status = kiln::search::Run(argc, argv);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
