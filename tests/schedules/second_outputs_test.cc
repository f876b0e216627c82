// Tests kernels that make a value and a function of it (graph::PartitionOptions::second_outputs).
// Whatever their schedule, both outputs are what the oracle computes.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "graph/prepare.h"
#include "graph/text_testing.h"
#include "search/sampling/sample.h"
#include "search/space/sketch.h"
#include "tests/schedules/check_llvm.h"

namespace kiln::search {
namespace {

using schedule::State;

// The output reads a value as it is, and q reads it through a scale, a shift and a relu. The value
// is a product p, or its sum s with the input.
constexpr std::string_view kNetwork = R"(
input x: float32[{shape}]
const scale: float32[8] = random(2, -1, 1)
const shift: float32[8] = random(3, -1, 1)
const w: float32[{weights}] = random(1, -1, 1)
p = {product}
{sum}
m = mul({value}, scale)
a = add(m, shift)
r = relu(a)
q = {reader}
y = add(q, {value})
output y)";

struct Kernel {
  std::string_view shape, weights, product, reader;
};

std::string Network(const Kernel& kernel, bool sum) {
  return fmt::format(fmt::runtime(kNetwork), fmt::arg("shape", kernel.shape),
                     fmt::arg("weights", kernel.weights), fmt::arg("product", kernel.product),
                     fmt::arg("reader", kernel.reader), fmt::arg("sum", sum ? "s = add(p, x)" : ""),
                     fmt::arg("value", sum ? "s" : "p"));
}

constexpr Kernel kConvolution = {"1, 6, 5, 8", "3, 3, 8, 8",
                                 "conv(x, w) {pads: [1, 1, 1, 1], channels_last: 1}",
                                 "conv(r, w) {pads: [1, 1, 1, 1], channels_last: 1}"};
constexpr Kernel kProduct = {"6, 8", "8, 8", "matmul(x, w)", "matmul(r, w)"};
constexpr Kernel kMaxPool = {"1, 6, 5, 8", "1, 1, 8, 8",
                             "max_pool(x) {kernel: [3, 3], pads: [1, 1, 1, 1], channels_last: 1}",
                             "conv(r, w) {channels_last: 1}"};
constexpr Kernel kAvgPool = {"1, 6, 5, 8", "1, 1, 8, 8",
                             "avg_pool(x) {kernel: [2, 2], channels_last: 1}",
                             "conv(r, w) {channels_last: 1}"};

struct Case {
  std::string name, network;
  bool winograd = false;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"product", Network(kProduct, true)},
      {"convolution", Network(kConvolution, true)},
      {"convolution alone", Network(kConvolution, false)},
      {"winograd", Network(kConvolution, true), /*winograd=*/true},
      {"winograd alone", Network(kConvolution, false), /*winograd=*/true},
      {"max pool", Network(kMaxPool, true)},
      {"average pool alone", Network(kAvgPool, false)},
  };
  return cases;
}

// Returns the computation of the network's first kernel, which has two outputs.
dag::DagPtr KernelOf(const Case& c) {
  const auto prepared =
      graph::PrepareNetwork(graph::ParsedGraph(c.network),
                            {.passes = {.is_gpu = true,
                                        .winograd = c.winograd ? graph::WinogradRule::kFast
                                                               : graph::WinogradRule::kNone}});
  KILN_CHECK(prepared.ok(), "{}", Message(prepared.status()));
  const dag::DagPtr dag = prepared->kernels.tasks[0].dag;
  KILN_CHECK(dag->nodes().back().op->num_outputs() == 2, "{} has one output", c.name);
  return dag;
}

TEST(SecondOutputs, RandomSchedulesComputeWhatTheOracleComputes) {
  constexpr uint64_t kSchedules = 32;
  for (const Case& c : Cases()) {
    const Workload workload = MakeWorkload(c.name, KernelOf(c), 3);
    for (uint64_t i = 0; i < kSchedules; ++i) {
      const uint64_t seed = SplitSeed(5, i);
      Rng rng(seed);
      const State state =
          schedule::RandomSchedule(workload.dag, seed, static_cast<int>(UniformIn(rng, 1, 14)));
      ASSERT_OK(CheckByInterpreter(workload, state));
      if (i % 8 == 0) ASSERT_OK(CheckByLlvm(workload, state));
    }
  }
}

// Returns some samples of each sketch.
std::vector<State> Samples(const Task& task, int of_each) {
  std::vector<State> states;
  Rng rng(7);
  for (const Sketch& sketch : GenerateSketches({task, Parameters()})) {
    int legal = 0;
    for (int draw = 0; draw < 80 && legal < of_each; ++draw) {
      StatusOr<State> state = Sample(sketch, task, Parameters(), rng);
      if (!state.ok()) continue;
      ++legal;
      states.push_back(*std::move(state));
    }
    EXPECT_EQ(legal, of_each) << schedule::PrintSteps(sketch.steps);
  }
  return states;
}

TEST(SecondOutputs, CpuSamplesComputeWhatTheOracleComputes) {
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  for (const Case& c : Cases()) {
    const Task task(KernelOf(c), target::Target{}, hardware, "[]");
    const Workload workload = MakeWorkload(c.name, task.dag, 3);
    for (const State& state : Samples(task, 2)) ASSERT_OK(CheckByLlvm(workload, state));
  }
}

// Warps are small, so that tiny workloads use several warps and blocks.
Task GpuTask(const Case& c) {
  return Task(KernelOf(c), *target::ParseTarget("cuda -arch=sm_90 -thread_warp_size=4"), {}, "[]");
}

TEST(SecondOutputs, GpuSamplesComputeWhatTheOracleComputes) {
  for (const Case& c : Cases()) {
    const Task task = GpuTask(c);
    const Workload workload = MakeWorkload(c.name, task.dag, 3);
    for (const State& state : Samples(task, 4)) {
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware));
    }
  }
}

TEST(SecondOutputs, CudaTextComputesTheSame) {
  for (const State& state : Samples(GpuTask(Cases()[0]), 1)) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    EXPECT_OK(codegen::CompareEmulated(program, 5, 1e-4));
  }
}

}  // namespace
}  // namespace kiln::search
