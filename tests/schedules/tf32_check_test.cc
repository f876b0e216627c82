// Tests that the check of trials allows the rounding of TF32, and nothing more. A candidate for
// matrix units is emulated as it is, and with one step of its sum left out, and compared as runners
// do.
#include <gtest/gtest.h>

#include <regex>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "runner/compare.h"
#include "scheduler/values/answer_tolerance.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/matrix_product.h"

namespace kiln::search {
namespace {

constexpr char kTarget[] = "cuda -arch=sm_90 -math=tf32";

// Matches the loop of a sum of 512 terms. Each iteration has 8 terms, one step of the instruction.
const std::regex kSteps("for (k\\S*) in 0\\.\\.64 \\{");
// Matches the loop of a step, of 8 terms.
const std::regex kStep(" k\\S* in 0\\.\\.8 \\{");

// Returns the text of a program with such loops.
std::string TextOf(const Task& task) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  Rng rng(2);
  for (int draw = 0; draw < 2000; ++draw) {
    const auto state =
        SampleGpu(sketches[static_cast<size_t>(draw) % sketches.size()], task, parameters, rng);
    if (!state.ok() || !MatrixStageOf(*state)) continue;
    const auto program = lower::Lower(*state, {.gpu = true});
    // There are no partial sums in between.
    if (!program.ok() || program->num_args() != 3) continue;
    std::string text = ir::ProgramText(*program);
    std::smatch steps, step;
    if (std::regex_search(text, steps, kSteps) && std::regex_search(text, step, kStep) &&
        steps.position() < step.position()) {
      return text;
    }
  }
  return "";
}

struct Outputs {
  ir::NDArray got, want;
};

// Returns the outputs of the text's CUDA, and those of the whole program.
StatusOr<Outputs> OutputsOf(const std::string& text, const std::string& whole) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, ir::ParseProgram(text));
  KILN_ASSIGN_OR_RETURN(const ir::Program reference, ir::ParseProgram(whole));
  std::vector<ir::NDArray> arrays;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    arrays.emplace_back(buffer.type, buffer.shape);
    arrays.back().FillRandom(static_cast<uint64_t>(i), ir::RandomKind::kUniform, 0);
  }
  std::vector<ir::NDArray> wanted = arrays;
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : wanted) arguments.push_back(&array);
  KILN_RETURN_IF_ERROR(ir::Interpret(reference, arguments));
  KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::GenerateCuda(program));
  KILN_RETURN_IF_ERROR(codegen::EmulateCuda(program, source, arrays));
  return Outputs{arrays.back(), wanted.back()};
}

int64_t Different(const Outputs& outputs, const v1::Tolerance& tolerance) {
  const runner::Argument argument{.name = "C",
                                  .dtype = runner::DType::kFloat32,
                                  .shape = outputs.got.shape(),
                                  .elements = outputs.got.num_elements(),
                                  .bytes = 4 * outputs.got.num_elements()};
  return runner::Compare(argument, outputs.got.bytes(), outputs.want.bytes(), tolerance).different;
}

TEST(Tf32Check, FailsAKernelThatDropsASliceOfTheSum) {
  const dag::DagPtr dag = *dag::BuildOp("matmul", "32,32,512");
  const Task task(dag, *target::ParseTarget(kTarget), {}, "[]");
  const std::string whole = TextOf(task);
  ASSERT_NE(whole, "");
  const std::string dropping = std::regex_replace(whole, kSteps, "for $1 in 0..63 {");
  const v1::Tolerance tolerance = scheduler::AnswerTolerance({}, dag::PrintDag(*dag), kTarget);
  ASSERT_OK_AND_ASSIGN(const Outputs right, OutputsOf(whole, whole));
  EXPECT_EQ(Different(right, tolerance), 0);
  EXPECT_GT(Different(right, {}), 0) << "it does not round";
  ASSERT_OK_AND_ASSIGN(const Outputs wrong, OutputsOf(dropping, whole));
  EXPECT_GT(Different(wrong, tolerance), 0);
}

}  // namespace
}  // namespace kiln::search
