#include "tests/schedules/check_program.h"

#include <algorithm>
#include <utility>

#include "compiler/dag/evaluate.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln {

Workload MakeWorkload(std::string name, dag::DagPtr dag, uint64_t seed) {
  Workload workload{std::move(name), std::move(dag), {}, {}};
  workload.inputs = dag::RandomInputs(*workload.dag, seed, ir::RandomKind::kSmallIntegers);
  auto outputs = dag::Evaluate(*workload.dag, workload.inputs, {.wide_accumulation = true});
  KILN_CHECK(outputs.ok(), "{}: {}", workload.name, Message(outputs.status()));
  workload.outputs = *std::move(outputs);
  return workload;
}

std::vector<ir::NDArray> PoisonedOutputs(const Workload& workload) {
  std::vector<ir::NDArray> outputs;
  for (const ir::NDArray& want : workload.outputs) {
    outputs.emplace_back(want.type(), want.shape());
    outputs.back().Poison();
  }
  return outputs;
}

ir::NDArray Packed(const ir::NDArray& plain, const Packing& packing) {
  ir::NDArray packed(plain.type(), PackedShape(packing));
  Pack(packing, plain.type().bytes(), plain.bytes(), packed.mutable_bytes());
  return packed;
}

ir::NDArray WithShape(const ir::NDArray& array, std::vector<int64_t> shape) {
  ir::NDArray other(array.type(), std::move(shape));
  KILN_CHECK(other.num_elements() == array.num_elements(), "{} {}", other.num_elements(),
             array.num_elements());
  std::ranges::copy(array.bytes(), other.mutable_bytes().begin());
  return other;
}

Status CompareOutputs(const Workload& workload, std::span<const ir::NDArray> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    KILN_RETURN_IF_ERROR(ir::Compare(outputs[i], workload.outputs[i],
                                     ir::DefaultTolerance(outputs[i].type()),
                                     fmt::format("output {}", i)));
  }
  return OkStatus();
}

Status CheckByInterpreter(const Workload& workload, const schedule::State& state, bool gpu) {
  const auto explain = [&](const Status& status, const ir::Program* program) {
    return Annotate(
        status,
        fmt::format("{} with steps {}\n{}", workload.name, schedule::PrintSteps(state.steps()),
                    program == nullptr ? std::string() : ir::ProgramText(*program)));
  };
  StatusOr<ir::Program> program = lower::Lower(state, {.gpu = gpu});
  if (!program.ok()) return explain(program.status(), nullptr);
  std::vector<ir::NDArray> inputs = workload.inputs, outputs = PoisonedOutputs(workload);
  std::vector<ir::NDArray*> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Buffer& buffer = program->buffers[i];
    inputs[i] =
        buffer.packing ? Packed(inputs[i], *buffer.packing) : WithShape(inputs[i], buffer.shape);
    arguments.push_back(&inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = WithShape(outputs[i], program->buffers[inputs.size() + i].shape);
    arguments.push_back(&outputs[i]);
  }
  Status status = ir::Interpret(*program, arguments, {.allow_equal_writes = gpu});
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = WithShape(outputs[i], workload.outputs[i].shape());
  if (status.ok()) status = CompareOutputs(workload, outputs);
  return status.ok() ? status : explain(status, &*program);
}

}  // namespace kiln
