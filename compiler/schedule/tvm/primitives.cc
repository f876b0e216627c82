#include "compiler/schedule/tvm/primitives.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/schedule/source/printer.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

constexpr std::array<std::string_view, 15> kReserved = {
    "te",      "tir",    "tvm",     "np",   "math",  "at",     "erf", "rsqrt",
    "sigmoid", "values", "reducer", "list", "float", "lambda", "sum"};

// Returns s[...] for a stage of the state before the step.
std::string StageOf(const SourcePrinter& out, int stage) {
  return TvmStage(out.before().stage(stage), out.Stage(stage));
}

std::vector<std::string_view> Items(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    items.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return items;
}

// Splits one loop into several, from the end whose lengths are given.
void PrintSplit(int stage, int loop, std::span<const int64_t> lengths, bool inner_to_outer,
                SourcePrinter& out) {
  const std::string parent = out.Loop(stage, loop);
  const std::string list = out.Pieces(stage, loop, static_cast<int>(lengths.size()) + 1);
  const std::vector<std::string_view> pieces = Items(list);
  const std::string s = StageOf(out, stage);
  std::string_view rest = parent;
  const int count = static_cast<int>(lengths.size());
  if (count == 0) out.Line("{} = {}", pieces[0], parent);
  for (int i = 0; i < count; ++i) {
    if (inner_to_outer) {
      out.Line("{}, {} = {}.split({}, factor={})", pieces.front(), pieces[count - i], s, rest,
               lengths[count - 1 - i]);
      rest = pieces.front();
    } else {
      out.Line("{}, {} = {}.split({}, nparts={})", pieces[i], pieces.back(), s, rest, lengths[i]);
      rest = pieces.back();
    }
  }
}

void Print(const SplitStep& step, SourcePrinter& out) {
  PrintSplit(step.stage_id, step.loop, step.lengths, step.inner_to_outer, out);
}

void Print(const FollowSplitStep& step, SourcePrinter& out) {
  PrintSplit(step.stage_id, step.loop, *FollowedLengths(step, out.before().steps()), true, out);
}

void Print(const FollowFusedSplitStep& step, SourcePrinter& out) {
  const int64_t length = *FollowedLength(step, out.before().steps());
  PrintSplit(step.stage_id, step.loop, {&length, 1}, step.factor_or_nparts, out);
}

void Print(const FuseStep& step, SourcePrinter& out) {
  const std::string fused = out.Fused(step.stage_id, step.loops);
  out.Line("{} = {}.fuse({})", fused, StageOf(out, step.stage_id),
           out.Loops(step.stage_id, step.loops));
}

void Print(const ReorderStep& step, SourcePrinter& out) {
  if (step.order.empty()) return;
  out.Line("{}.reorder({})", StageOf(out, step.stage_id), out.Loops(step.stage_id, step.order));
}

void Print(const AnnotateStep& step, SourcePrinter& out) {
  const std::string& loop = out.Loop(step.stage_id, step.loop);
  const std::string_view name = AnnotationName(step.annotation);
  if (IsBound(step.annotation)) {
    out.Line("{}.bind({}, te.thread_axis(\"{}\"))", StageOf(out, step.stage_id), loop, name);
  } else {
    out.Line("{}.{}({})", StageOf(out, step.stage_id), name, loop);
  }
}

void Print(const PragmaStep& step, SourcePrinter& out) {
  const std::string s = StageOf(out, step.stage_id);
  const std::string& loop = out.Loop(step.stage_id, step.loop);
  if (!step.setting) return out.Line("{}.pragma({}, \"{}\")", s, loop, step.pragma);
  out.Line("{}.pragma({}, \"{}\", {})", s, loop, ir::RowOf(step.setting->hint).pragma,
           step.setting->value);
  out.Line("{}.pragma({}, \"unroll_explicit\", True)", s, loop);
}

void Print(const StorageAlignStep& step, SourcePrinter& out) {
  out.Line("{}.storage_align({}, {}, {})", StageOf(out, step.stage_id),
           out.Loop(step.stage_id, step.loop), step.factor, step.offset);
}

void Print(const ComputeAtStep& step, SourcePrinter& out) {
  out.Line("{}.compute_at({}, {})", StageOf(out, step.stage_id), StageOf(out, step.target_stage),
           out.Loop(step.target_stage, step.target_loop));
}

void Print(const ComputeInlineStep& step, SourcePrinter& out) {
  out.Line("{}.compute_inline()", StageOf(out, step.stage_id));
}

void Print(const ComputeRootStep& step, SourcePrinter& out) {
  out.Line("{}.compute_root()", StageOf(out, step.stage_id));
}

// te.compute returns a list if there are several outputs.
std::string Tensor(const SourcePrinter& out, int stage) {
  const bool several = out.before().stage(stage).op->num_outputs() > 1;
  return out.Stage(stage) + (several ? "[0]" : "");
}

void Print(const CacheReadStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  std::vector<std::string> readers;
  for (int reader : step.readers) readers.push_back(Tensor(out, reader));
  out.Line("{} = s.cache_read({}, \"{}\", [{}])", out.NewStage(step.stage_id + 1), stage,
           step.scope, fmt::join(readers, ", "));
}

void Print(const CacheWriteStep& step, SourcePrinter& out) {
  const std::string stage = out.Stage(step.stage_id);
  out.Line("{} = s.cache_write({}, \"{}\")", out.NewStage(step.stage_id, {step.stage_id + 1}),
           stage, step.scope);
}

void Print(const RfactorStep& step, SourcePrinter& out) {
  const std::string stage = Tensor(out, step.stage_id);
  const std::string loop = out.Loop(step.stage_id, step.loop);
  out.Line("{} = s.rfactor({}, {}, {})", out.NewStage(step.stage_id, {step.stage_id + 1}), stage,
           loop, step.factor_iter);
}

// CheckIsTvms refuses these steps.
void Print(const BufferingStep&, SourcePrinter&) {}
void Print(const LayoutStep&, SourcePrinter&) {}
void Print(const MergeAxesStep&, SourcePrinter&) {}
void Print(const MoveStageStep&, SourcePrinter&) {}
void Print(const OnlineSoftmaxStep&, SourcePrinter&) {}

template <typename... StepTs>
void PrintKind(StepList<StepTs...>, const Step& step, SourcePrinter& out) {
  const auto print = [&]<typename StepT>(const StepT* one) {
    if (one != nullptr) Print(*one, out);
    return one != nullptr;
  };
  const bool known = (print(As<StepTs>(step)) || ...);
  KILN_CHECK(known, "{}", step.tag());
}

void PrintStep(const Step& step, SourcePrinter& out) { PrintKind(StepKinds(), step, out); }

void PrintAxes(const Stage& stage, std::string_view name, std::string_view loops,
               SourcePrinter& out) {
  const std::string s = TvmStage(stage, name);
  out.Line("{}, = list({}.op.axis){}", loops, s,
           stage.op->reduce_axes().empty() ? "" : fmt::format(" + list({}.op.reduce_axis)", s));
}

const SourceDialect kTvmDialect = {.step = PrintStep, .axes = PrintAxes, .reserved = kReserved};

// Returns the feature of a step that TVM lacks, or "".
std::string_view WhatTvmLacks(const Step& step, const dag::Operator& op) {
  if (step.IsExtension()) return "the steps of Kiln's own (docs/steps.md)";
  const auto* annotate = As<AnnotateStep>(step);
  if (annotate != nullptr && annotate->annotation == Annotation::kTensorize)
    return "tensorize, whose instruction the step does not say";
  if (As<ComputeInlineStep>(step) != nullptr && op.num_outputs() > 1)
    return "an operator of several outputs that is inlined";
  return "";
}

Status CheckIsTvms(const State& state) {
  State current(state.initial_dag());
  int number = 0;
  for (const StepPtr& step : state.steps()) {
    const dag::Operator& op = current.dag()->op(step->stage());
    if (const std::string_view lacking = WhatTvmLacks(*step, op); !lacking.empty()) {
      return InvalidArgument(
          "TVM has no such step: {} #{} {} of stage {} ({}); expected a schedule without {}",
          step->name(), number, step->ToJson(), step->stage(), op.name(), lacking);
    }
    KILN_RETURN_IF_ERROR(current.Apply(step));
    ++number;
  }
  if (!state.concrete())
    return InvalidArgument("a split has a blank length: expected a schedule without blanks");
  return OkStatus();
}

}  // namespace

std::span<const std::string_view> TvmReservedWords() { return kReserved; }

std::string TvmStage(const Stage& stage, std::string_view name) {
  return fmt::format("s[{}{}]", name, stage.op->num_outputs() > 1 ? "[0]" : "");
}

StatusOr<std::string> TvmPrimitives(const State& state) {
  KILN_RETURN_IF_ERROR(CheckIsTvms(state));
  SourcePrinter printer(state.initial_dag(), kTvmDialect);
  for (const StepPtr& step : state.steps()) printer.Add(step);
  return std::move(printer).Finish();
}

}  // namespace kiln::schedule
