// Tests a softmax between two products as one kernel, as the search samples and changes it. Over
// types, lengths and sizes of heads, the CUDA text computes what the program says, and the program
// what the computation says.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 4, of each workload) choose which and how
// many. A failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/mutation.h"
#include "search/evolution/rebuild.h"
#include "search/policies/policy.h"
#include "search/sampling/sample_gpu.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;

constexpr dag::OpCase kCases[] = {
    {"attention", "2,128,64", "", ir::kFloat16},
    {"attention", "1,130,64,causal=1", "", ir::kBFloat16},
    {"attention", "3,49,32", "relu", ir::kFloat16},
    {"attention", "1,7,128,causal=1", "", ir::kFloat16},
    {"attention", "2,40,80,keys=100,mask=1", "", ir::kFloat16},
    {"attention", "1,96,8,values=24", "", ir::kFloat16},
    {"attention", "1,33,5,values=3", "", ir::kFloat16},
    {"attention", "2,64,32,causal=1", "", ir::kFloat32},
    // Blocks share the keys of these.
    {"attention", "3,1,16,keys=530", "", ir::kFloat16},
    {"attention", "2,20,24,keys=600,mask=1,values=9", "", ir::kBFloat16},
};

Task MakeTask(const dag::DagPtr& dag, std::string_view target = "cuda -arch=sm_90") {
  target::HardwareParams hardware;
  hardware.max_shared_memory_per_block_bytes = 227 << 10;
  return Task(dag, *target::ParseTarget(target), hardware, "[]");
}

const Sketch& OnlineSketch(const std::vector<Sketch>& sketches) {
  const auto found = std::ranges::find_if(
      sketches, [](const Sketch& sketch) { return sketch.state.online() != nullptr; });
  KILN_CHECK(found != sketches.end(), "no sketch of an online softmax");
  return *found;
}

// Returns samples, every second one with its tile changed.
std::vector<State> Samples(const Task& task, uint64_t seed, size_t count,
                           double warpgroup_prob = Parameters().warpgroup_prob) {
  Parameters parameters;
  parameters.warpgroup_prob = warpgroup_prob;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  const Sketch& sketch = OnlineSketch(sketches);
  Rng rng(seed);
  std::vector<State> states;
  for (int draw = 0; draw < 400 && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
    if (state.ok() && states.size() % 2 == 1) {
      const auto mutation =
          MutateAs(MutationKind::kTileSize, task, parameters, {state->steps(), sketch.steps}, rng);
      KILN_CHECK(mutation.ok(), "{}", Message(mutation.status()));
      Drop why = Drop::kIllegal;
      state = Rebuild(task, mutation->steps, why);
    }
    if (state.ok()) states.push_back(*std::move(state));
  }
  return states;
}

void ExpectRight(const Task& task, const Workload& workload, const State& state, bool has_units) {
  SCOPED_TRACE(schedule::PrintSteps(state.steps()));
  ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
  ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
  ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  const ir::MatrixUnitScope scope = state.online()->matrix_unit;
  // The kernel calls these functions, so the search begins behind their definitions.
  const size_t kernel = source.text.find("__global__");
  ASSERT_NE(kernel, source.text.npos);
  const auto has = [&](std::string_view text) {
    return source.text.find(text, kernel) != source.text.npos;
  };
  const bool is_warpgroup = scope == ir::MatrixUnitScope::kWarpgroup;
  EXPECT_EQ(has("multiply_warpgroup_"), is_warpgroup);
  EXPECT_EQ(has("multiply_tiles_"), has_units && !is_warpgroup);
  ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
}

TEST(OnlineSoftmax, CandidatesComputeWhatTheProgramSays) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  for (const dag::OpCase& c : kCases) {
    SCOPED_TRACE(fmt::format("{}, seed {}", c.Name(), seed));
    const Task task = MakeTask(c.Build());
    const Workload workload = MakeWorkload(c.Name(), task.dag, 3);
    const std::vector<State> states = Samples(task, seed, EnvironmentOr("KILN_CANDIDATES", 4));
    EXPECT_GE(states.size(), 3u);
    for (const State& state : states) ExpectRight(task, workload, state, c.dtype != ir::kFloat32);
  }
}

// The cases have keys and values by columns, heads whose rows are no multiple of 32 bytes, and
// queries by columns, which come through registers.
TEST(OnlineSoftmax, FourWarpsTogether) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  std::vector<Task> tasks;
  for (const dag::OpCase& c : kCases) {
    if (c.dtype != ir::kFloat32) tasks.push_back(MakeTask(c.Build()));
  }
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr columns, dag::ParseDag(R"(
input Q: float16[2, 32, 70]
input K: float16[2, 32, 90]
input V: float16[2, 24, 90]
S[b: 2, i: 70, j: 90] = sum(k: 32) float32(Q[b, k, i])*float32(K[b, k, j])
M[b: 2, i: 70] = max(n: 90) S[b, i, n]*0.25
P[b: 2, i: 70, j: 90] = exp(S[b, i, j]*0.25 - M[b, i])
L[b: 2, i: 70] = sum(n: 90) P[b, i, n]
O[b: 2, i: 70, d: 24] = sum(n: 90) float32(float16(P[b, i, n]))*float32(V[b, d, n])
out[b: 2, i: 70, d: 24] = float16(O[b, i, d]/L[b, i])
)"));
  tasks.push_back(MakeTask(columns));
  for (const Task& task : tasks) {
    SCOPED_TRACE(fmt::format("{}, seed {}", dag::PrintDag(*task.dag), seed));
    const Workload workload = MakeWorkload("of four warps", task.dag, 3);
    const std::vector<State> states = Samples(task, seed, EnvironmentOr("KILN_CANDIDATES", 4), 1);
    EXPECT_GE(states.size(), 3u);
    for (const State& state : states) ExpectRight(task, workload, state, true);
  }
}

// A person wrote this declaration. It has grouped queries.
TEST(OnlineSoftmax, DeclarationsHaveOneToo) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(
input Q: float16[2, 40, 3, 32]
input K: float16[2, 50, 32]
input V: float16[2, 50, 32]
S[b: 2, g: 3, i: 40, j: 50] = sum(k: 32) float32(Q[b, i, g, k])*float32(K[b, j, k])
M[b: 2, g: 3, i: 40] = max(n: 50) S[b, g, i, n]*0.125
P[b: 2, g: 3, i: 40, j: 50] = exp(S[b, g, i, j]*0.125 - M[b, g, i])
L[b: 2, g: 3, i: 40] = sum(n: 50) P[b, g, i, n]
O[b: 2, i: 40, g: 3, d: 32] = sum(n: 50) float32(float16(P[b, g, i, n]/L[b, g, i]))*float32(V[b, n, d])
out[b: 2, i: 40, g: 3, d: 32] = float16(O[b, i, g, d])
)"));
  const Task task = MakeTask(dag);
  const Workload workload = MakeWorkload("declaration", dag, 3);
  for (const State& state : Samples(task, 5, 4)) ExpectRight(task, workload, state, true);
}

// Some of the random proposals use the single kernel, and compute the right outputs, too.
TEST(OnlineSoftmax, RandomProposalsHaveSome) {
  const dag::OpCase c{"attention", "2,48,16,causal=1", "", ir::kFloat16};
  const Task task = MakeTask(c.Build());
  const Workload workload = MakeWorkload(c.Name(), task.dag, 3);
  ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy("sketch.random", task, 17));
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy->Propose(48));
  std::set<std::string> online;
  size_t others = 0;
  for (const Candidate& candidate : candidates) {
    ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(task.dag, candidate.steps));
    if (state.online() == nullptr) {
      ++others;
      continue;
    }
    if (!online.insert(schedule::PrintSteps(candidate.steps)).second) continue;
    ExpectRight(task, workload, state, true);
  }
  EXPECT_GE(online.size(), 3u);
  EXPECT_GE(others, 3u);
}

TEST(OnlineSoftmax, CompilesWithoutSpills) {
  if (!codegen::FindNvrtc().ok()) GTEST_SKIP() << "no NVRTC";
  for (const auto& [args, tile] : {std::pair{"12,128,64", "16, 64, 4, 2, 1"},
                                   {"12,128,64", "16, 128, 1, 1, 1, 4"},
                                   {"16,1024,64", "32, 64, 4, 2, 1"},
                                   {"32,4096,128,causal=1", "16, 64, 8, 2, 1"},
                                   {"40,1,64,keys=6144", "16, 128, 1, 3, 1, 4, 8"},
                                   {"8,1,128,keys=6144", "16, 64, 1, 3, 1, 4, 8, 1"},
                                   {"12,128,64", "16, 64, 4, 1, 2"},
                                   {"16,1024,64", "16, 128, 8, 2, 2"},
                                   {"16,1024,64", "16, 128, 12, 2, 2"},
                                   {"32,4096,128,causal=1", "16, 128, 8, 2, 2"},
                                   {"32,4096,128,causal=1", "16, 64, 4, 3, 2"}}) {
    SCOPED_TRACE(fmt::format("{}: {}", args, tile));
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag,
                         dag::BuildOp("attention", args, {.dtype = ir::kFloat16}));
    ASSERT_OK_AND_ASSIGN(const auto steps, schedule::ParseSteps(fmt::format(
                                               "[[\"OS\", {}, {}]]", dag->size() - 1, tile)));
    ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(dag, steps));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    ASSERT_OK_AND_ASSIGN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
    EXPECT_EQ(cubin.log, "");
    ASSERT_EQ(cubin.kernels.size(), program.kernels.size());
    for (const codegen::KernelResources& kernel : cubin.kernels)
      EXPECT_EQ(kernel.spill_store_bytes, 0);
  }
}

// GPUs without matrix units have the sketch, too. There is no such sketch without sums in float32.
TEST(OnlineSoftmax, EveryGpuHasThem) {
  const dag::OpCase c{"attention", "2,48,16", "", ir::kFloat16};
  const Task old = MakeTask(c.Build(), "cuda -arch=sm_75");
  const std::vector<Sketch> sketches = GenerateSketches({old, Parameters()});
  EXPECT_EQ(OnlineSketch(sketches).state.online()->matrix_unit, ir::MatrixUnitScope::kNone);
  const Task wide = MakeTask(dag::OpCase{"attention", "2,48,16", "", ir::kFloat64}.Build());
  for (const Sketch& sketch : GenerateSketches({wide, Parameters()}))
    EXPECT_EQ(sketch.state.online(), nullptr);
  const Task cpu = MakeTask(c.Build(), "llvm");
  for (const Sketch& sketch : GenerateSketches({cpu, Parameters()}))
    EXPECT_EQ(sketch.state.online(), nullptr);
}

}  // namespace
}  // namespace kiln::search
