// Random legal schedules over the operator library, compiled by LLVM, compute what the oracle
// computes.
//
// KILN_SEED (default 1) and KILN_SCHEDULES (default 2000) choose which and how many; a failure
// prints operator, seed and steps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/llvm.h"
#include "compiler/codegen/loaded_program_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/random_schedule.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "tests/schedules/check_program.h"

namespace kiln {
namespace {

struct OpCase {
  const char* op;
  const char* args;
  const char* epilogue;
};

// Odd extents, primes and 1 on purpose.
constexpr OpCase kCases[] = {
    {"matmul", "7,5,11", ""},
    {"matmul", "1,13,3", "bias,relu"},
    {"matmul", "16,16,16", "relu"},
    {"dense", "3,7,17", "bias"},
    {"dense", "1,10,1", ""},
    {"batch_matmul", "2,5,3,7", ""},
    {"conv2d_nchw", "1,5,7,3,2,3,3,1,1", "bias,relu"},
    {"conv2d_nchw", "2,7,5,4,3,1,1,2,0", ""},
    {"conv2d_nchw", "1,9,9,2,4,3,3,1,2,2", "relu"},
    {"conv2d_nchw", "1,5,5,4,4,3,3,1,1,1,2", ""},
    {"conv2d_nhwc", "1,7,7,3,5,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "1,5,3,1,1,3,3,1,1", "residual"},
    {"depthwise_conv2d_nchw", "1,7,7,3,3,3,1,1", "bias"},
    {"depthwise_conv2d_nhwc", "1,6,5,4,3,3,2,1", "relu"},
    {"max_pool2d_nchw", "1,7,7,3,3,3,2,1", ""},
    {"avg_pool2d_nhwc", "1,5,5,3,2,2,2,0", ""},
    {"global_avg_pool2d_nchw", "1,5,7,7", ""},
    {"softmax", "3,7", ""},
    {"softmax", "2,3,5", ""},
    {"sum", "5,7,3,axis=1", ""},
    {"mean", "4,9,axis=0", ""},
    {"max", "3,11,axis=1", "relu"},
    {"min", "13,axis=0", ""},
    {"prod", "3,4,axis=1", ""},
    {"argmax", "3,7,axis=1", ""},
    {"add", "3,5,7", "sigmoid"},
    {"relu", "1,17", ""},
    {"gelu", "3,5", ""},
};

uint64_t EnvironmentOr(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

StatusOr<std::vector<ir::NDArray>> RunCompiled(const Workload& workload,
                                               const codegen::Compiled& compiled) {
  KILN_ASSIGN_OR_RETURN(const codegen::LoadedProgram program,
                        codegen::LoadedProgram::Load(compiled.binary));
  std::vector<codegen::GuardedBytes> memory;
  std::vector<void*> pointers;
  std::vector<ir::NDArray> outputs = PoisonedOutputs(workload);
  size_t input = 0, output = 0;
  for (const codegen::Argument& arg : compiled.args) {
    const ir::NDArray array(arg.type, arg.shape);
    memory.emplace_back(array.bytes().size(), codegen::GuardedBytes::Place::kBack);
    if (arg.scope == ir::Scope::kInput) {
      std::memcpy(memory.back().data(), workload.inputs[input++].bytes().data(),
                  array.bytes().size());
    } else {
      std::memset(memory.back().data(), 0xa5, array.bytes().size());
    }
    pointers.push_back(memory.back().data());
  }
  program.Run(pointers);
  for (size_t i = 0; i < compiled.args.size(); ++i) {
    if (compiled.args[i].scope != ir::Scope::kOutput) continue;
    std::memcpy(outputs[output].mutable_bytes().data(), memory[i].data(),
                outputs[output].bytes().size());
    ++output;
  }
  return outputs;
}

Status CheckByLlvm(const Workload& workload, const schedule::State& state) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {}));
  KILN_RETURN_IF_ERROR(ir::Verify(program));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget("llvm"));
  KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled, codegen::CompileLlvm(program, target));
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> outputs, RunCompiled(workload, compiled));
  return Annotate(CompareOutputs(workload, outputs), ir::ProgramText(program));
}

// Schedule i is checked by part i % kParts: Bazel hands out whole tests to its shards.
constexpr uint64_t kParts = 8;

class RandomSchedules : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomSchedules, ComputeWhatTheOracleComputes) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  const uint64_t count = EnvironmentOr("KILN_SCHEDULES", 2000);
  std::vector<Workload> workloads;
  for (const OpCase& c : kCases) {
    ASSERT_OK_AND_ASSIGN(dag::DagPtr dag,
                         dag::BuildOp(c.op, c.args, {.epilogue = dag::SplitEpilogue(c.epilogue)}));
    workloads.push_back(MakeWorkload(fmt::format("{} {} {}", c.op, c.args, c.epilogue), dag, seed));
  }
  for (uint64_t i = GetParam(); i < count; i += kParts) {
    const uint64_t schedule_seed = SplitSeed(seed, i);
    Rng rng(schedule_seed);
    const Workload& workload = workloads[i % workloads.size()];
    const int length = static_cast<int>(UniformIn(rng, 1, 14));
    const schedule::State state = schedule::RandomSchedule(workload.dag, schedule_seed, length);
    const Status status = CheckByLlvm(workload, state);
    ASSERT_TRUE(status.ok()) << workload.name << ", seed " << seed << ", schedule " << i
                             << "\nsteps " << schedule::PrintSteps(state.steps()) << "\n"
                             << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomSchedules, testing::Range<uint64_t>(0, kParts));

}  // namespace
}  // namespace kiln
