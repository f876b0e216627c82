#include "tests/fuzz/targets/promises.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/numbers/integers.h"
#include "compiler/dag/evaluate.h"
#include "compiler/features/features.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kMaxBytes = 1 << 20;

// The results of plain loops, and the inputs that they get.
struct Oracle {
  std::vector<ir::NDArray> inputs, outputs;
};

StatusOr<Oracle> Ask(const dag::Dag& dag) {
  Oracle oracle;
  oracle.inputs = dag::RandomInputs(dag, 1, ir::RandomKind::kSmallIntegers);
  KILN_ASSIGN_OR_RETURN(oracle.outputs, dag::Evaluate(dag, oracle.inputs));
  return oracle;
}

// Returns whether every device refuses the program at once, whatever it computes. The interpreter
// refuses such programs, too.
bool IsTooLargeForAnyDevice(const ir::Program& program) {
  return std::ranges::any_of(program.kernels, [](const ir::Kernel& kernel) {
    return ProductOfCounts(kernel.block) > 1024 || kernel.cluster > 16;
  });
}

void CheckComputes(const ir::Program& program, const schedule::State& state, bool gpu,
                   double most_work) {
  if (IsTooLargeForAnyDevice(program)) return;
  // A computation without an answer, for instance with an index that leaves its tensor, may fail in
  // any way that has a message.
  StatusOr<Oracle> oracle = Ask(*state.initial_dag());
  if (!oracle.ok()) return CheckRefusal(oracle.status());
  std::vector<ir::NDArray> outputs;
  for (const ir::NDArray& want : oracle->outputs) {
    outputs.emplace_back(want.type(), want.shape()).Poison();
  }
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : oracle->inputs) arguments.push_back(&array);
  for (ir::NDArray& array : outputs) arguments.push_back(&array);
  const Status run = ir::Interpret(program, arguments,
                                   {.allow_equal_writes = gpu,
                                    .max_steps = static_cast<int64_t>(most_work) * 4,
                                    .max_bytes = kMaxBytes});
  if (run.code() == StatusCode::kResourceExhausted) return;
  KILN_CHECK(run.ok(), "{}\n{}", Message(run), ir::ProgramText(program));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Status same = ir::Compare(outputs[i], oracle->outputs[i],
                                    ir::DefaultTolerance(outputs[i].type()), "output");
    KILN_CHECK(same.ok(), "{}\n{}", Message(same), ir::ProgramText(program));
  }
}

device::DeviceModel SomeDevice(bool gpu) {
  if (gpu) return device::UsualGpu(90);
  device::DeviceModel model;
  model.name = "a CPU";
  model.cores = 8;
  return model;
}

}  // namespace

void CheckRefusal(const Status& status) {
  KILN_CHECK(!status.ok());
  KILN_CHECK(!Message(status).empty());
  KILN_CHECK(status.code() != StatusCode::kInternal && status.code() != StatusCode::kUnknown, "{}",
             Message(status));
}

double WorkIn(const dag::Dag& dag) {
  double work = 0;
  for (int i = 0; i < dag.size(); ++i) {
    const dag::Operator& op = dag.op(i);
    work += static_cast<double>(op.num_elements()) * static_cast<double>(op.reduce_size()) *
            (1 + op.properties().size.tree.nodes);
  }
  return work;
}

void CheckPrintsAndParses(const ir::Program& program) {
  const auto equal = [](const ir::Program& a, const ir::Program& b) { return ir::Equal(a, b); };
  CheckRoundTrip(program, ir::ProgramText, ir::ParseProgram, equal);
}

void CheckFeatures(const ir::Program& program, bool gpu) {
  target::Target target;
  target.kind = gpu ? &target::kCuda : &target::kLlvm;
  const FloatMatrix rows = features::ExtractFeatures(
      program, target, target::DefaultHardware(target, 8), SomeDevice(gpu));
  for (int r = 0; r < rows.rows(); ++r) {
    for (size_t c = 0; c < rows.row(r).size(); ++c) {
      KILN_CHECK(std::isfinite(rows.row(r)[c]), "{} of row {} is {}\n{}",
                 features::FeatureNames()[c], r, rows.row(r)[c], ir::ProgramText(program));
    }
  }
}

void CheckLowered(const schedule::State& state, bool gpu, double most_work) {
  const StatusOr<ir::Program> program = lower::Lower(state, {.gpu = gpu});
  if (!program.ok()) return CheckRefusal(program.status());
  const Status verified = ir::Verify(*program);
  KILN_CHECK(verified.ok(), "{}", Message(verified));
  CheckPrintsAndParses(*program);
  CheckFeatures(*program, gpu);
  if (WorkIn(*state.initial_dag()) < most_work) CheckComputes(*program, state, gpu, most_work);
}

}  // namespace kiln::fuzz
