// Tests that NaN, infinities, -0 and denormals mean the same in the oracle, in machine code of CPUs
// and in the emulated text of CUDA, whatever the schedule. Each value is placed at the first, a
// middle and the last element of each input of every operator (compiler/dag/special_inputs.h says
// what is compared).
//
// KILN_SEED (default 1) chooses schedules, inputs and places. A failure prints it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/special_inputs.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "graph/op_cases_testing.h"
#include "search/policies/policy.h"
#include "tests/schedules/check_program.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

uint64_t Seed() { return EnvironmentOr("KILN_SEED", 1); }

using Rows = std::vector<dag::SpecialCase>;

Rows RowsOf(const dag::Dag& dag) {
  StatusOr<Rows> rows = dag::SpecialCases(dag, Seed());
  KILN_CHECK(rows.ok(), "{}", Message(rows.status()));
  return *std::move(rows);
}

Task MakeTask(dag::DagPtr dag, std::string_view target) {
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  return Task(std::move(dag), *target::ParseTarget(target),
              target == "llvm" ? hardware : target::HardwareParams(), "[]");
}

std::vector<schedule::State> Proposals(const Task& task, int n) {
  StatusOr<std::unique_ptr<Policy>> policy = MakePolicy("sketch.random", task, Seed());
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  StatusOr<std::vector<Candidate>> candidates = (*policy)->Propose(n);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  std::vector<schedule::State> states;
  for (const Candidate& candidate : *candidates) {
    StatusOr<schedule::State> state = schedule::Replay(task.dag, candidate.steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    states.push_back(*std::move(state));
  }
  return states;
}

// A program of this machine, loaded once, with its arguments.
class CpuProgram {
 public:
  static StatusOr<std::unique_ptr<CpuProgram>> Make(const schedule::State& state) {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {}));
    KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget("llvm"));
    KILN_ASSIGN_OR_RETURN(codegen::Compiled compiled, codegen::CompileLlvm(program, target));
    KILN_ASSIGN_OR_RETURN(codegen::LoadedProgram loaded,
                          codegen::LoadedProgram::Load(compiled.binary));
    return std::unique_ptr<CpuProgram>(new CpuProgram(std::move(compiled), std::move(loaded)));
  }

  std::vector<ir::NDArray> Run(const dag::SpecialCase& row) {
    size_t input = 0;
    for (size_t i = 0; i < compiled_.args.size(); ++i) {
      const codegen::Argument& arg = compiled_.args[i];
      const auto bytes = static_cast<size_t>(arg.bytes());
      if (arg.scope != ir::Scope::kInput) {
        std::memset(memory_[i].data(), 0xa5, bytes);
        continue;
      }
      const ir::NDArray& plain = row.inputs[input++];
      const ir::NDArray taken = arg.packing ? Packed(plain, *arg.packing) : plain;
      std::memcpy(memory_[i].data(), taken.bytes().data(), bytes);
    }
    loaded_.Run(pointers_);
    std::vector<ir::NDArray> outputs = row.outputs;
    size_t output = 0;
    for (size_t i = 0; i < compiled_.args.size(); ++i) {
      if (compiled_.args[i].scope != ir::Scope::kOutput) continue;
      std::memcpy(outputs[output].mutable_bytes().data(), memory_[i].data(),
                  outputs[output].bytes().size());
      ++output;
    }
    return outputs;
  }

 private:
  CpuProgram(codegen::Compiled compiled, codegen::LoadedProgram loaded)
      : compiled_(std::move(compiled)), loaded_(std::move(loaded)) {
    for (const codegen::Argument& arg : compiled_.args) {
      memory_.emplace_back(static_cast<size_t>(arg.bytes()), codegen::GuardedBytes::Place::kBack);
      pointers_.push_back(memory_.back().data());
    }
  }

  codegen::Compiled compiled_;
  codegen::LoadedProgram loaded_;
  std::vector<codegen::GuardedBytes> memory_;
  std::vector<void*> pointers_;
};

// Checks all rows. The first row that differs is enough for each program. Returns how many rows are
// right only as results of an online softmax.
StatusOr<int> CheckRows(
    const schedule::State& state, const Rows& rows,
    absl::FunctionRef<StatusOr<std::vector<ir::NDArray>>(const dag::SpecialCase&)> run) {
  const dag::SpecialJudge judge(*state.dag());
  int online = 0;
  for (const dag::SpecialCase& row : rows) {
    KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> outputs, run(row));
    const auto by_variant = judge.Judge(outputs, row, state.online() != nullptr);
    if (!by_variant.ok())
      return Annotate(by_variant.status(), fmt::format("seed {}, {}", Seed(), row.name));
    online += *by_variant > 0 ? 1 : 0;
  }
  return online;
}

Status CheckOnCpu(const Rows& rows, const schedule::State& state) {
  const std::string steps = schedule::PrintSteps(state.steps());
  const auto program = CpuProgram::Make(state);
  if (!program.ok()) return Annotate(program.status(), steps);
  const auto checked =
      CheckRows(state, rows, [&](const dag::SpecialCase& row) { return (*program)->Run(row); });
  return Annotate(checked.status(), steps);
}

// Programs for GPUs, which are compiled together.
class GpuPrograms {
 public:
  Status Add(std::string name, const schedule::State& state) {
    KILN_ASSIGN_OR_RETURN(ir::Program program, lower::Lower(state, {.gpu = true}));
    KILN_ASSIGN_OR_RETURN(codegen::CudaSource source, codegen::GenerateCuda(program));
    sources_.push_back(std::move(source));
    items_.push_back({std::move(name), state, std::move(program)});
    return OkStatus();
  }
  size_t size() const { return items_.size(); }

  // Returns how many rows are right only as results of an online softmax.
  int Check() {
    int online = 0;
    CheckInto(online);
    return online;
  }

 private:
  struct Item {
    std::string name;
    schedule::State state;
    ir::Program program;
  };

  void CheckInto(int& online) {
    ASSERT_OK_AND_ASSIGN(const auto emulated, codegen::EmulatedCuda::Compile(std::move(sources_)));
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      SCOPED_TRACE(item.name);
      SCOPED_TRACE(schedule::PrintSteps(item.state.steps()));
      const Rows rows = RowsOf(*item.state.dag());
      const auto checked = CheckRows(
          item.state, rows, [&](const dag::SpecialCase& row) { return Run(*emulated, i, row); });
      EXPECT_OK(checked);
      online += checked.ok() ? *checked : 0;
    }
    sources_.clear();
    items_.clear();
  }

  StatusOr<std::vector<ir::NDArray>> Run(codegen::EmulatedCuda& emulated, size_t number,
                                         const dag::SpecialCase& row) const {
    const ir::Program& program = items_[number].program;
    std::vector<ir::NDArray> buffers;
    size_t input = 0;
    for (int i = 0; i < program.num_args(); ++i) {
      const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
      if (buffer.scope == ir::Scope::kInput) {
        buffers.push_back(WithShape(row.inputs[input++], buffer.shape));
        continue;
      }
      buffers.emplace_back(buffer.type, buffer.shape);
      buffers.back().Fill(-3.25);
    }
    KILN_RETURN_IF_ERROR(emulated.Run(number, buffers));
    std::vector<ir::NDArray> outputs;
    for (int i = 0; i < program.num_args(); ++i) {
      if (program.buffers[static_cast<size_t>(i)].scope == ir::Scope::kOutput)
        outputs.push_back(
            WithShape(buffers[static_cast<size_t>(i)], row.outputs[outputs.size()].shape()));
    }
    return outputs;
  }

  std::vector<codegen::CudaSource> sources_;
  std::vector<Item> items_;
};

// Part i % kParts checks case i, because Bazel gives whole tests to its shards.
constexpr size_t kParts = 4;
constexpr size_t kCompiledTogether = 16;

class SpecialValues : public testing::TestWithParam<size_t> {};

TEST_P(SpecialValues, OnACpuAsInTheOracle) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), "llvm");
    const Rows rows = RowsOf(*task.dag);
    EXPECT_OK(CheckOnCpu(rows, schedule::State(task.dag)));
    for (const schedule::State& state : Proposals(task, 2)) EXPECT_OK(CheckOnCpu(rows, state));
  }
}

// Warps are small, so that tiny workloads use several warps and blocks.
TEST_P(SpecialValues, InCudaAsInTheOracle) {
  const std::span<const dag::OpCase> cases = dag::SmallOpCases();
  GpuPrograms programs;
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const Task task = MakeTask(cases[i].Build(), "cuda -thread_warp_size=4");
    for (const schedule::State& state : Proposals(task, 2))
      ASSERT_OK(programs.Add(cases[i].Name(), state));
    if (programs.size() >= kCompiledTogether) programs.Check();
  }
  programs.Check();
}

TEST_P(SpecialValues, OfNetworksOnACpuAsInTheOracle) {
  const std::vector<graph::OpCase>& cases = graph::SmallOpCases();
  for (size_t i = GetParam(); i < cases.size(); i += kParts) {
    SCOPED_TRACE(cases[i].Name());
    const dag::DagPtr dag = cases[i].Write();
    EXPECT_OK(CheckOnCpu(RowsOf(*dag), schedule::State(dag)));
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, SpecialValues, testing::Range<size_t>(0, kParts));

// The cases are large enough for warps that exchange registers, several warps of a block, vectors,
// and tiles in shared memory.
TEST(SpecialValuesInCuda, AcrossThreads) {
  const struct {
    const char *op, *args;
    ir::Type type = ir::kFloat32;
  } cases[] = {
      {"max", "37,60,axis=1"},
      {"max", "96,51,axis=0"},
      {"min", "4099"},
      {"max", "3,64,40,axis=0,axis=1"},
      {"max", "9,512,axis=1", ir::kFloat16},
      {"argmax", "21,100,axis=1"},
      {"argmin", "7,64,axis=0"},
      {"softmax", "19,128"},
      {"softmax", "3,7,99"},
      {"layer_norm", "13,64"},
      {"max_pool2d_nhwc", "1,11,9,16,3,3,2,1"},
      {"relu", "64,96", ir::kFloat16},
      {"relu", "1023,7"},
      {"attention", "1,33,16"},
  };
  GpuPrograms programs;
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::BuildOp(c.op, c.args, {.dtype = c.type}));
    for (const schedule::State& state : Proposals(MakeTask(dag, "cuda -arch=sm_90"), 2))
      ASSERT_OK(programs.Add(fmt::format("{} {}", c.op, c.args), state));
  }
  programs.Check();
}

// Returns the state of an online softmax.
StatusOr<schedule::State> OnlineState(const dag::DagPtr& dag, std::string_view tile) {
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(fmt::format("[[\"OS\", {}, {}]]",
                                                                           dag->size() - 1, tile)));
  return schedule::Replay(dag, steps);
}

// The cases have tiles of keys that a causal mask hides, and keys whose weights round to 0 beside
// later ones. Tiles are [rows, keys, warps, depth, matrix_unit, parts].
TEST(SpecialValuesInCuda, OfAnOnlineSoftmax) {
  const struct {
    const char *args, *tile;
    ir::Type type;
    // The results may differ from the oracle's.
    bool may_differ;
  } cases[] = {
      {"1,40,16,causal=1", "16, 16, 1, 1, 0", ir::kFloat32, true},
      {"1,40,16,causal=1", "16, 16, 1, 2, 1", ir::kFloat16, true},
      {"1,40,16,causal=1", "16, 32, 2, 3, 0, 2", ir::kFloat16, true},
      {"1,64,64", "16, 16, 2, 2, 1", ir::kFloat16, true},
      // All keys are one tile.
      {"1,20,4,keys=16", "16, 16, 1, 1, 0", ir::kFloat32, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.args, c.tile));
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag,
                         dag::BuildOp("attention", c.args, {.dtype = c.type}));
    ASSERT_OK_AND_ASSIGN(const schedule::State state, OnlineState(dag, c.tile));
    GpuPrograms programs;
    ASSERT_OK(programs.Add(c.args, state));
    EXPECT_EQ(programs.Check() > 0, c.may_differ);
  }
}

TEST(SpecialValuesTest, EveryOperatorHasACase) {
  std::set<std::string> covered;
  for (const dag::OpCase& c : dag::SmallOpCases()) covered.insert(c.op);
  for (const dag::OpInfo& op : dag::AllOps()) EXPECT_TRUE(covered.contains(op.name)) << op.name;
}

}  // namespace
}  // namespace kiln::search
