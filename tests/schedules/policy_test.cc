// Tests that the proposals of the search policies compute what the DAG says.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/evolution/synthetic_testing.h"
#include "search/policies/random_policy.h"
#include "search/policies/sketch_policy.h"
#include "tests/schedules/check_program.h"

namespace kiln::search {
namespace {

Task MakeTask(std::string_view op, std::string_view args, std::string_view epilogue) {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  return Task(*dag, target::Target{}, hardware, "[]");
}

Task MakeGpuTask(std::string_view op, std::string_view args, std::string_view epilogue) {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  // Warps are small, so that tiny workloads use several warps and blocks.
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90 -thread_warp_size=4"), {}, "[]");
}

TEST(Policies, GpuCandidatesComputeWhatTheDagSays) {
  const struct {
    const char *op, *args, *epilogue;
  } cases[] = {{"matmul", "8,8,8", ""},
               {"matmul", "12,8,6", "relu"},
               {"matmul", "2,3,64", ""},
               {"matmul", "7,9,5", ""},
               {"conv2d_nchw", "1,6,6,4,3,3,3,1,1", "bias,relu"},
               {"conv2d_nhwc", "1,6,6,8,4,3,3,2,1", ""},
               {"depthwise_conv2d_nchw", "1,5,5,4,3,3,1,1", "relu"},
               {"conv2d_winograd_nhwc", "1,4,4,4,3", "bias,relu"},
               {"max_pool2d_nchw", "1,7,7,3,3,3,2,1", ""},
               {"global_avg_pool2d_nhwc", "1,5,5,6", ""},
               {"softmax", "4,16", ""},
               {"softmax", "3,14", ""},
               {"layer_norm", "4,16,one_pass=1", ""},
               {"layer_norm", "3,300,one_pass=1", ""},
               {"min", "4,64,axis=1", ""},
               {"sum", "64,axis=0", ""}};
  for (const auto& c : cases) {
    const Task task = MakeGpuTask(c.op, c.args, c.epilogue);
    const Parameters parameters{.vary_thread_counts = true};
    const Workload workload =
        MakeWorkload(fmt::format("{} {} {}", c.op, c.args, c.epilogue), task.dag, 3);
    RandomPolicy policy(task, parameters, 17);
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(40));
    ASSERT_GT(candidates.size(), 0u) << workload.name;
    for (const Candidate& candidate : candidates) {
      ASSERT_OK_AND_ASSIGN(const schedule::State state,
                           schedule::Replay(task.dag, candidate.steps));
      const Status status = CheckByInterpreter(workload, state, /*gpu=*/true);
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
    }
  }
}

TEST(Policies, CandidatesComputeWhatTheDagSays) {
  const struct {
    const char *op, *args, *epilogue;
  } cases[] = {{"matmul", "12,8,6", "relu"},
               {"matmul", "2,3,64", ""},
               {"conv2d_nchw", "1,7,7,4,3,3,3,1,1", "bias,relu"},
               {"conv2d_nhwc", "1,6,6,8,3,3,3,2,1", ""},
               {"depthwise_conv2d_nchw", "1,5,5,4,3,3,1,1", "relu"},
               {"conv2d_winograd_nhwc", "1,4,4,4,3,by_rows=1", "bias,relu"},
               {"max_pool2d_nchw", "1,7,7,3,3,3,2,1", ""},
               {"softmax", "4,14", ""},
               {"layer_norm", "4,64,one_pass=1", ""},
               {"sum", "4,64,axis=1", ""}};
  for (const auto& c : cases) {
    const Task task = MakeTask(c.op, c.args, c.epilogue);
    const Workload workload =
        MakeWorkload(fmt::format("{} {} {}", c.op, c.args, c.epilogue), task.dag, 3);
    RandomPolicy policy(task, Parameters(), 17);
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(60));
    ASSERT_GT(candidates.size(), 10u) << workload.name;
    for (const Candidate& candidate : candidates) {
      ASSERT_OK_AND_ASSIGN(const schedule::State state,
                           schedule::Replay(task.dag, candidate.steps));
      const Status status = CheckByInterpreter(workload, state);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
}

// The learned search proposes mostly changed and crossed candidates.
TEST(Policies, EvolvedCandidatesComputeWhatTheDagSays) {
  const struct {
    const char *op, *args, *epilogue;
    bool gpu;
  } cases[] = {{"matmul", "12,8,6", "relu", false},
               {"matmul", "2,3,64", "", false},
               {"conv2d_nchw", "1,7,7,4,3,3,3,1,1", "bias,relu", false},
               {"depthwise_conv2d_nchw", "1,5,5,4,3,3,1,1", "relu", false},
               {"max_pool2d_nchw", "1,7,7,3,3,3,2,1", "", false},
               {"softmax", "4,14", "", false},
               {"matmul", "12,8,16", "relu", true},
               {"matmul", "2,3,64", "", true},
               {"conv2d_nhwc", "1,6,6,8,4,3,3,2,1", "bias", true},
               {"conv2d_winograd_nhwc", "1,4,4,4,3", "bias,relu", true},
               {"depthwise_conv2d_nchw", "1,5,5,4,3,3,1,1", "relu", true},
               {"softmax", "3,14", "", true}};
  for (const auto& c : cases) {
    const Task task =
        c.gpu ? MakeGpuTask(c.op, c.args, c.epilogue) : MakeTask(c.op, c.args, c.epilogue);
    const Workload workload =
        MakeWorkload(fmt::format("{} {} {}", c.op, c.args, c.epilogue), task.dag, 3);
    Parameters parameters;
    parameters.evolutionary_search_population = 100;
    parameters.sample_init_population = 30;
    parameters.max_rejected_draws = 300;
    SketchPolicy policy(task, parameters, 17,
                        {.models = {.learned = std::make_shared<AdditiveModel>()},
                         .features = TileFeaturesOf,
                         .threads = 2});
    int changed = 0;
    for (int round = 0; round < 4; ++round) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy.Propose(12));
      std::vector<Observation> observations;
      for (const Candidate& candidate : candidates) {
        ASSERT_OK_AND_ASSIGN(const schedule::State state,
                             schedule::Replay(task.dag, candidate.steps));
        const Status status = CheckByInterpreter(workload, state, c.gpu);
        ASSERT_TRUE(status.ok()) << candidate.origin << "\n" << status;
        observations.push_back({candidate, true, HiddenCost(candidate.steps)});
        changed += candidate.origin.find("change") != std::string::npos;
      }
      policy.Observe(observations);
    }
    EXPECT_GT(changed, 3) << workload.name << (c.gpu ? " gpu" : " cpu");
  }
}

}  // namespace
}  // namespace kiln::search
