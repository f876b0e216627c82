#include "builder/build.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "builder/artifact.h"
#include "builder/build_with.h"
#include "builder/handwritten_build.h"
#include "builder/message_text.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/codegen/handwritten/compile.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "rpc/artifact_digest.h"
#include "rpc/hardware_message.h"

namespace kiln::builder {
namespace {

StatusOr<codegen::Fault> FaultOf(v1::Fault fault, const target::Target& target) {
  if (fault == v1::FAULT_COMPILER_CRASH) std::abort();
  while (fault == v1::FAULT_COMPILER_HANG) pause();
  if (fault == v1::FAULT_NONE) return codegen::Fault::kNone;
  if (!target.kind->runs_programs) {
    return InvalidArgument("a program for target {} is never run and cannot have fault {}",
                           target.kind->name, v1::Fault_Name(fault));
  }
  switch (fault) {
    case v1::FAULT_NULL_STORE:
      return codegen::Fault::kNullStore;
    case v1::FAULT_INFINITE_LOOP:
      return codegen::Fault::kInfiniteLoop;
    case v1::FAULT_WRONG_ANSWER:
      return codegen::Fault::kWrongAnswer;
    case v1::FAULT_TRAP:
      return codegen::Fault::kTrap;
    case v1::FAULT_OUT_OF_BOUNDS:
      return codegen::Fault::kOutOfBounds;
    default:
      return InvalidArgument("unknown fault {}, expected 0 to {}", static_cast<int>(fault),
                             static_cast<int>(v1::Fault_MAX));
  }
}

std::string ServedKinds(codegen::Backends backends) {
  std::vector<std::string_view> names;
  for (const codegen::Backend* backend : backends) {
    if (backend->Compiler().ok()) names.push_back(backend->kind().name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

struct Setting {
  const codegen::Backend* backend;
  target::Target target;
};

StatusOr<Setting> SettingOf(const v1::BuildRequest& request, codegen::Backends backends) {
  const auto target = target::ParseTarget(request.target(), codegen::KindsOf(backends));
  if (!target.ok()) return Annotate(target.status(), "target");
  const codegen::Backend* const backend = codegen::FindBackend(*target->kind, backends);
  if (const auto compiler = backend->Compiler(); !compiler.ok()) {
    return Unimplemented("this builder cannot compile for '{}', it serves {}: {}", request.target(),
                         ServedKinds(backends), Message(compiler.status()));
  }
  auto resolved = backend->Resolve(*target);
  if (!resolved.ok()) return Annotate(resolved.status(), "target");
  return Setting{backend, *std::move(resolved)};
}

StatusOr<ir::Program> Instantiate(const dag::DagPtr& dag, const v1::BuildRequest& request,
                                  const Setting& setting) {
  const target::Target& target = setting.target;
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(request.steps()));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps));
  KILN_ASSIGN_OR_RETURN(ir::Program program, lower::Lower(state, {.gpu = target.is_gpu()}));
  const auto hardware = target::FillHardware(target, HardwareParamsOf(request.hardware()));
  KILN_RETURN_IF_ERROR(setting.backend->Check(program, target, hardware));
  return program;
}

BuildOutcome Failed(v1::ErrorKind kind, const Status& status) {
  BuildOutcome outcome;
  outcome.reply.set_error(kind);
  outcome.reply.set_message(CutMessage(Message(status)));
  // An Internal error comes from a system call or a library, which may work elsewhere or later. A
  // compiler that is missing may be installed.
  outcome.repeatable =
      status.code() != StatusCode::kInternal && status.code() != StatusCode::kUnimplemented;
  return outcome;
}

// The plan's arguments begin with the DAG's arguments, in the same order. They get the DAG's names
// and shapes, whatever axes the program has merged, and inputs get their ranges. A program that
// runs nowhere may have no arguments.
void SetTensors(const dag::DagText& text, v1::Artifact& artifact) {
  const std::vector<std::string> names = dag::DisplayNames(*text.dag);
  int arg = 0;
  for (const dag::Tensor& argument : text.dag->arguments()) {
    if (arg == artifact.plan().args_size()) break;
    v1::ArgSpec& spec = *artifact.mutable_plan()->mutable_args(arg++);
    const std::vector<int64_t>& shape = text.dag->shape(argument);
    spec.set_name(dag::TensorName(*text.dag, names, argument));
    spec.mutable_shape()->Assign(shape.begin(), shape.end());
    const std::string& name = names[static_cast<size_t>(argument.op)];
    const auto range = std::ranges::find(text.ranges, name, &dag::InputRange::input);
    if (spec.role() != v1::ArgSpec::INPUT || range == text.ranges.end()) continue;
    spec.mutable_range()->set_low(range->low);
    spec.mutable_range()->set_high(range->high);
    spec.mutable_range()->set_run(range->run);
  }
  artifact.set_digest(DigestOf(artifact));
}

// The compiled program of a request, made from loops or a hand-written kernel, or an error and
// whose fault it is.
struct Generated {
  // Without a binary if only the source was asked for.
  StatusOr<codegen::Compiled> compiled;
  // Kind of the error.
  v1::ErrorKind kind = v1::COMPILE_HOST_ERROR;
  // Set if only the source was asked for.
  std::string source = {};
};

Generated GenerateLoops(const ir::Program& program, const Setting& setting, codegen::Fault fault,
                        v1::TrialTimes& times) {
  codegen::CompileTimes generate_times;
  auto source =
      setting.backend->Generate(program, setting.target, {.fault = fault}, generate_times);
  times.set_generate_s(generate_times.generate_s);
  if (!source.ok()) return {source.status()};
  return {.compiled = std::move(source->interface), .source = std::move(source->text)};
}

Generated CompileLoops(const dag::DagPtr& dag, const v1::BuildRequest& request,
                       const Setting& setting, codegen::Fault fault, double start_s,
                       v1::TrialTimes& times) {
  const auto program = Instantiate(dag, request, setting);
  if (!program.ok()) return {program.status(), v1::INSTANTIATION_ERROR};
  times.set_instantiate_s(Clock::Real().MonotonicSeconds() - start_s);
  if (request.source_only()) return GenerateLoops(*program, setting, fault, times);
  codegen::CompileTimes compile_times;
  auto compiled =
      setting.backend->Compile(*program, setting.target, {.fault = fault}, compile_times);
  times.set_generate_s(compile_times.generate_s);
  times.set_compile_s(compile_times.compile_s);
  return {std::move(compiled)};
}

Generated CompileSource(const dag::DagPtr& dag, const v1::BuildRequest& request,
                        const Setting& setting, double start_s, v1::TrialTimes& times) {
  const auto hardware = target::FillHardware(setting.target, HardwareParamsOf(request.hardware()));
  const auto kernel = SpecializeRequest(request, *dag, hardware);
  if (!kernel.ok()) return {kernel.status(), v1::INSTANTIATION_ERROR};
  times.set_instantiate_s(Clock::Real().MonotonicSeconds() - start_s);
  codegen::CompileTimes compile_times;
  auto compiled = codegen::CompileHandwritten(*kernel, dag, *setting.backend, setting.target,
                                              hardware, compile_times);
  times.set_compile_s(compile_times.compile_s);
  return {std::move(compiled)};
}

StatusOr<BuildOutcome> RunStages(const v1::BuildRequest& request, codegen::Backends backends,
                                 double start_s) {
  KILN_ASSIGN_OR_RETURN(const Setting setting, SettingOf(request, backends));
  const auto text = dag::ParseDagText(request.dag());
  if (!text.ok()) return InvalidArgument("dag: {}", Message(text.status()));
  KILN_ASSIGN_OR_RETURN(const codegen::Fault fault, FaultOf(request.fault(), setting.target));
  KILN_ASSIGN_OR_RETURN(const bool handwritten, IsHandwritten(request));
  if (handwritten && fault != codegen::Fault::kNone)
    return InvalidArgument(
        "faults are built into generated code, and this is a hand-written kernel");
  if (handwritten && request.source_only())
    return InvalidArgument(
        "source_only is for generated code, and this is a hand-written kernel, whose source its "
        "user has");
  v1::TrialTimes times;
  Generated generated = handwritten
                            ? CompileSource(text->dag, request, setting, start_s, times)
                            : CompileLoops(text->dag, request, setting, fault, start_s, times);
  if (!generated.compiled.ok()) return Failed(generated.kind, generated.compiled.status());
  BuildOutcome outcome;
  *outcome.reply.mutable_times() = times;
  *outcome.reply.mutable_artifact() =
      MakeArtifact(*std::move(generated.compiled), setting.target.kind->device);
  SetTensors(*text, *outcome.reply.mutable_artifact());
  outcome.reply.set_source(std::move(generated.source));
  return outcome;
}

}  // namespace

StatusOr<BuildOutcome> BuildWith(codegen::Backends backends, const v1::BuildRequest& request) {
  const double start_s = Clock::Real().MonotonicSeconds();
  auto outcome = RunStages(request, backends, start_s);
  if (outcome.ok()) outcome->reply.set_build_s(Clock::Real().MonotonicSeconds() - start_s);
  return outcome;
}

StatusOr<BuildOutcome> Build(const v1::BuildRequest& request) {
  return BuildWith(codegen::AllBackends(), request);
}

}  // namespace kiln::builder
