#include "builder/build.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "builder/artifact.h"
#include "builder/message_text.h"
#include "compiler/codegen/cuda_checks.h"
#include "compiler/codegen/cuda_compile.h"
#include "compiler/codegen/llvm.h"
#include "compiler/codegen/null.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "proto/artifact_digest.h"
#include "proto/hardware_message.h"

namespace kiln::builder {
namespace {

using target::TargetKind;

StatusOr<codegen::Fault> FaultOf(v1::Fault fault, const target::Target& target) {
  if (fault == v1::FAULT_COMPILER_CRASH) std::abort();
  while (fault == v1::FAULT_COMPILER_HANG) pause();
  if (fault == v1::FAULT_NONE) return codegen::Fault::kNone;
  if (target.kind == TargetKind::kNull) {
    return InvalidArgument("a program for target null is never run and cannot have fault {}",
                           v1::Fault_Name(fault));
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

StatusOr<target::Target> TargetOf(const v1::BuildRequest& request) {
  auto target = target::ParseTarget(request.target());
  if (!target.ok()) return Annotate(target.status(), "target");
  switch (target->kind) {
    case TargetKind::kNull:
      return target;
    case TargetKind::kLlvm: {
      auto resolved = codegen::ResolveCpu(*target);
      if (!resolved.ok()) return Annotate(resolved.status(), "target");
      return resolved;
    }
    case TargetKind::kCuda: {
      const auto nvrtc = codegen::FindNvrtc();
      if (!nvrtc.ok()) {
        return Unimplemented("this builder cannot compile for '{}', it serves llvm and null: {}",
                             request.target(), Message(nvrtc.status()));
      }
      return target;
    }
  }
  return Unimplemented("this builder has no code generator for target '{}'", request.target());
}

StatusOr<ir::Program> Instantiate(const dag::DagPtr& dag, const v1::BuildRequest& request,
                                  const target::Target& target) {
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(request.steps()));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps));
  auto program = lower::Lower(state, {.gpu = target.is_gpu()});
  if (!program.ok() || !target.is_gpu()) return program;
  const auto hardware = target::FillHardware(target, HardwareParamsOf(request.hardware()));
  KILN_RETURN_IF_ERROR(codegen::CheckCudaProgram(*program, hardware, target.GpuArch()));
  return program;
}

StatusOr<codegen::Compiled> Compile(const ir::Program& program, const target::Target& target,
                                    codegen::Fault fault, v1::TrialTimes& times) {
  if (target.kind == TargetKind::kNull) return codegen::CompileNull(program);
  if (target.is_gpu()) {
    KILN_ASSIGN_OR_RETURN(codegen::CudaCompiled result,
                          codegen::CompileCudaWithReport(program, target, {.fault = fault}));
    times.set_generate_s(result.generate_s);
    times.set_compile_s(result.compile_s);
    return std::move(result.compiled);
  }
  const double start_s = Clock::Real().MonotonicSeconds();
  auto compiled = codegen::CompileLlvm(program, target, {.fault = fault});
  times.set_compile_s(Clock::Real().MonotonicSeconds() - start_s);
  return compiled;
}

BuildOutcome Failed(v1::ErrorKind kind, const Status& status) {
  BuildOutcome outcome;
  outcome.reply.set_error(kind);
  outcome.reply.set_message(CutMessage(Message(status)));
  // Internal is a system call or a library that failed, maybe only now and here.
  outcome.repeatable = status.code() != StatusCode::kInternal;
  return outcome;
}

// The plan's inputs are the DAG's, in its order.
void SetInputRanges(const dag::DagText& text, v1::Artifact& artifact) {
  if (text.ranges.empty()) return;
  const std::vector<std::string> names = dag::DisplayNames(*text.dag);
  int arg = 0;
  for (const dag::Tensor& argument : text.dag->arguments()) {
    v1::ArgSpec& spec = *artifact.mutable_plan()->mutable_args(arg++);
    const std::string& name = names[static_cast<size_t>(argument.op)];
    const auto range = std::ranges::find(text.ranges, name, &dag::InputRange::input);
    if (spec.role() != v1::ArgSpec::INPUT || range == text.ranges.end()) continue;
    spec.mutable_range()->set_low(range->low);
    spec.mutable_range()->set_high(range->high);
  }
  artifact.set_digest(DigestOf(artifact));
}

StatusOr<BuildOutcome> RunStages(const v1::BuildRequest& request, double start_s) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, TargetOf(request));
  const auto text = dag::ParseDagText(request.dag());
  if (!text.ok()) return InvalidArgument("dag: {}", Message(text.status()));
  KILN_ASSIGN_OR_RETURN(const codegen::Fault fault, FaultOf(request.fault(), target));
  v1::TrialTimes times;
  const auto program = Instantiate(text->dag, request, target);
  if (!program.ok()) return Failed(v1::INSTANTIATION_ERROR, program.status());
  times.set_instantiate_s(Clock::Real().MonotonicSeconds() - start_s);
  auto compiled = Compile(*program, target, fault, times);
  if (!compiled.ok()) return Failed(v1::COMPILE_HOST_ERROR, compiled.status());
  BuildOutcome outcome;
  *outcome.reply.mutable_times() = times;
  *outcome.reply.mutable_artifact() = MakeArtifact(*std::move(compiled));
  SetInputRanges(*text, *outcome.reply.mutable_artifact());
  return outcome;
}

}  // namespace

StatusOr<BuildOutcome> Build(const v1::BuildRequest& request) {
  const double start_s = Clock::Real().MonotonicSeconds();
  auto outcome = RunStages(request, start_s);
  if (outcome.ok()) outcome->reply.set_build_s(Clock::Real().MonotonicSeconds() - start_s);
  return outcome;
}

}  // namespace kiln::builder
