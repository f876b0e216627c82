#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const AnnotateStep& step, SourcePrinter& out) {
  const std::string& stage = out.Stage(step.stage_id);
  const std::string& loop = out.Loop(step.stage_id, step.loop);
  const std::string_view name = AnnotationName(step.annotation);
  switch (step.annotation) {
    case Annotation::kUnroll:
    case Annotation::kVectorize:
    case Annotation::kParallel:
    case Annotation::kTensorize:
      return out.Line("s[{}].{}({})", stage, name, loop);
    default:
      return out.Line("s[{}].bind({}, \"{}\")", stage, loop, name);
  }
}

namespace {

StatusOr<StepPtr> Annotated(SourceCall& call, Annotation annotation) {
  const int loop = call.Loop("the loop");
  return call.Make<AnnotateStep>(call.stage(), loop, annotation);
}

}  // namespace

StatusOr<StepPtr> ReadUnroll(SourceCall& call) { return Annotated(call, Annotation::kUnroll); }
StatusOr<StepPtr> ReadVectorize(SourceCall& call) {
  return Annotated(call, Annotation::kVectorize);
}
StatusOr<StepPtr> ReadParallel(SourceCall& call) { return Annotated(call, Annotation::kParallel); }
StatusOr<StepPtr> ReadTensorize(SourceCall& call) {
  return Annotated(call, Annotation::kTensorize);
}

StatusOr<StepPtr> ReadBind(SourceCall& call) {
  const int loop = call.Loop("the loop");
  const std::string_view name = call.Text("what the loop is bound to");
  auto annotation = Annotation::kNone;
  std::string known;
  for (int i = 1; i <= static_cast<int>(Annotation::kCluster); ++i) {
    if (!IsBound(static_cast<Annotation>(i))) continue;
    if (AnnotationName(static_cast<Annotation>(i)) == name) annotation = static_cast<Annotation>(i);
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ",
                         AnnotationName(static_cast<Annotation>(i)));
  }
  if (annotation == Annotation::kNone)
    call.Fail(fmt::format("one of {}, found \"{}\"", known, name));
  return call.Make<AnnotateStep>(call.stage(), loop, annotation);
}

}  // namespace kiln::schedule
