// Measures the host time of search rounds at the default parameters, and its parts. Costs are made
// up (tile lengths near hidden ones are fast); the features and the model are the real ones.
//   bazel run -c opt //search/policies:search_bench -- [threads] [rounds] [cases]
// cases: runs only cases whose operator, arguments and target, as printed, contain this text.
#include <fmt/format.h>

#include <cstdlib>

#include "compiler/dag/ops/registry.h"
#include "search/evolution/synthetic_testing.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

struct Case {
  const char *op, *args, *epilogue, *target;
};
constexpr Case kCases[] = {
    {"matmul", "512,512,512", "", "llvm"},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu", "llvm"},
    {"matmul", "512,512,512", "", "cuda -arch=sm_90"},
    {"conv2d_nhwc", "1,56,56,64,64,3,3,1,1", "bias,relu", "cuda -arch=sm_90"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu", "cuda -arch=sm_90"},
};

Status Bench(const Case& c, int threads, int rounds) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag,
                        dag::BuildOp(c.op, c.args, {.epilogue = dag::SplitEpilogue(c.epilogue)}));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(c.target));
  const Task task(dag, target, target::DefaultHardware(target, 4), "[]");
  KILN_ASSIGN_OR_RETURN(const Models models, MakeModels("sketch.xgb", 1));
  KILN_ASSIGN_OR_RETURN(const auto policy,
                        MakePolicy("sketch.xgb", task, 1, {.models = models, .threads = threads}));
  fmt::print("---- {} {} {}, {} threads\n", c.op, c.args, c.target, threads);
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy->Propose(64));
    fmt::print("{}", PrintRound(policy->last_round()));
    std::vector<Observation> observations;
    for (const Candidate& candidate : candidates) {
      observations.push_back({candidate, true, HiddenCost(candidate.steps)});
      best = std::min(best, observations.back().cost_s);
    }
    fmt::print("  best hidden cost so far {:.3g}\n", best);
    policy->Observe(observations);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln::search

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::string only = argc > 3 ? argv[3] : "";
  for (const auto& c : kiln::search::kCases) {
    if (fmt::format("{} {} {}", c.op, c.args, c.target).find(only) == std::string::npos) continue;
    const kiln::Status status = kiln::search::Bench(c, threads, rounds);
    if (!status.ok()) {
      fmt::print(stderr, "{} {}: {}\n", c.op, c.args, kiln::Message(status));
      return 1;
    }
  }
}
