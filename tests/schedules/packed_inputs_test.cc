// Tests that programs with packed weights (compiler/lower/packed_layout.h) compute what the oracle
// computes with plain weights, over random legal schedules and the search's proposals.
//
// KILN_SEED (default 1) and KILN_SCHEDULES (default 400) choose which and how many.
#include <gtest/gtest.h>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/pack_constants.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/environment.h"

namespace kiln {
namespace {

struct Case {
  const char *op, *args, *epilogue = "", *dtype = "float32";
};
// Extents are odd, so that tiles have tails.
constexpr Case kCases[] = {
    {"conv2d_nhwc", "1,7,6,9,5,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "2,5,5,8,4,3,3,1,1"},
    {"conv2d_nhwc", "1,4,4,16,8,1,1,1,0", "relu", "bfloat16"},
    {"conv2d_nhwc", "1,4,4,16,8,1,1,1,0", "relu", "float8_e4m3fn"},
    {"matmul", "7,11,13"},
    {"dense", "5,17,9", "bias"},
    {"batch_matmul", "2,7,9,13"},
    {"conv2d_winograd_nhwc", "1,6,6,5,4"},
    {"conv2d_nchw", "1,6,7,9,5,3,3,2,1", "bias,relu"},
    {"conv2d_nchw", "1,5,5,6,4,3,3,1,1,groups=2"},
    {"conv1d_nwc", "2,9,6,5,3,2,1"},
    {"conv3d_ncdhw", "1,4,3,5,5,3,3,3,3,1,1"},
    {"depthwise_conv2d_nhwc", "1,5,7,6,3,3,1,1"},
};

Workload PackedWorkload(const Case& c) {
  dag::OpOptions options;
  options.epilogue = dag::SplitEpilogue(c.epilogue);
  options.dtype = *ir::ParseType(c.dtype);
  const auto dag = dag::BuildOp(c.op, c.args, options);
  KILN_CHECK(dag.ok(), "{} {}: {}", c.op, c.args, Message(dag.status()));
  // All inputs are packed; in a product this includes the factor that the weights are multiplied
  // by.
  const dag::DagPtr packed = dag::PackConstants(*dag, [](int) { return true; });
  KILN_CHECK(packed != *dag, "{} {} reads nothing by a sum", c.op, c.args);
  return MakeWorkload(fmt::format("{} {}", c.op, c.args), packed, 3);
}

bool TakesPacked(const schedule::State& state, bool gpu = false) {
  const auto program = lower::Lower(state, {.gpu = gpu});
  return program.ok() && std::ranges::any_of(program->buffers, [](const ir::Buffer& buffer) {
           return buffer.packing.has_value();
         });
}

TEST(PackedInputsTest, RandomSchedules) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const uint64_t count = EnvironmentOr("KILN_SCHEDULES", 400);
  std::vector<Workload> workloads;
  for (const Case& c : kCases) workloads.push_back(PackedWorkload(c));
  uint64_t packed = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t schedule_seed = SplitSeed(seed, i);
    Rng rng(schedule_seed);
    const Workload& workload = workloads[i % workloads.size()];
    const int length = static_cast<int>(UniformIn(rng, 1, 14));
    const schedule::State state = schedule::RandomSchedule(workload.dag, schedule_seed, length);
    packed += TakesPacked(state);
    const Status right = CheckByInterpreter(workload, state);
    ASSERT_TRUE(right.ok()) << "schedule " << i << ": " << right;
    if (i % 4 != 0) continue;
    const Status compiled = CheckByLlvm(workload, state);
    ASSERT_TRUE(compiled.ok()) << "schedule " << i << ": " << compiled;
  }
  // Few programs take all inputs plain: those without steps, inlined, or padded too far.
  EXPECT_GT(packed, count / 2);
}

TEST(PackedInputsTest, WhatTheSearchProposes) {
  for (const Case& c : kCases) {
    const Workload workload = PackedWorkload(c);
    SCOPED_TRACE(workload.name);
    target::HardwareParams hardware;
    hardware.num_cores = 2;
    const search::Task task(workload.dag, *target::ParseTarget("llvm"), hardware, "[]");
    ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 17));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(6));
    int packed = 0;
    for (const search::Candidate& candidate : candidates) {
      ASSERT_OK_AND_ASSIGN(const schedule::State state,
                           schedule::Replay(workload.dag, candidate.steps));
      EXPECT_OK(CheckByLlvm(workload, state));
      packed += TakesPacked(state);
    }
    // Only the unscheduled loops take all inputs plain.
    EXPECT_GE(packed, std::ssize(candidates) - 1);
  }
}

// Threads of a block fetch the tiles, which have tails and are copied ahead; some reductions are
// split.
TEST(PackedInputsTest, WhatTheSearchProposesForAGpu) {
  int packed = 0, candidates_in_all = 0;
  for (const Case& c : kCases) {
    const Workload workload = PackedWorkload(c);
    SCOPED_TRACE(workload.name);
    const search::Task task(workload.dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
    ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 17));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(8));
    for (const search::Candidate& candidate : candidates) {
      ASSERT_OK_AND_ASSIGN(const schedule::State state,
                           schedule::Replay(workload.dag, candidate.steps));
      EXPECT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      packed += TakesPacked(state, /*gpu=*/true);
    }
    candidates_in_all += static_cast<int>(candidates.size());
  }
  EXPECT_GT(packed, candidates_in_all / 3);
}

}  // namespace
}  // namespace kiln
