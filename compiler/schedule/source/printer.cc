#include "compiler/schedule/source/printer.h"

#include <utility>

#include "compiler/schedule/source/kinds.h"
#include "compiler/schedule/source/print.h"

namespace kiln::schedule {
namespace {

template <typename... StepTs>
void PrintKind(StepList<StepTs...>, const Step& step, SourcePrinter& out) {
  const auto print = [&]<typename StepT>(const StepT* one) {
    if (one != nullptr) PrintSource(*one, out);
    return one != nullptr;
  };
  const bool known = (print(As<StepTs>(step)) || ...);
  KILN_CHECK(known, "{}", step.tag());
}

void PrintStep(const Step& step, SourcePrinter& out) { PrintKind(StepKinds(), step, out); }

void PrintAxes(const Stage&, std::string_view name, std::string_view loops, SourcePrinter& out) {
  out.Line("{} = s[{}].axes", loops, name);
}

}  // namespace

const SourceDialect kKilnDialect = {.step = PrintStep, .axes = PrintAxes};

SourcePrinter::SourcePrinter(const dag::DagPtr& dag, const SourceDialect& dialect)
    : dialect_(dialect), before_(dag), after_(before_), names_(before_, dialect.reserved) {
  for (int i = 0; i < before_.num_stages(); ++i) DeclareAxes(i);
}

void SourcePrinter::Add(const StepPtr& step) {
  const Status status = after_.Apply(step);
  KILN_CHECK(status.ok(), "a step of the state does not apply again: {}", Message(status));
  if (const auto* split = As<SplitStep>(*step))
    split_by_.emplace(static_cast<int>(before_.steps().size()), Loop(split->stage_id, split->loop));
  dialect_.step(*step, *this);
  for (int stage : std::exchange(fresh_, {})) DeclareAxes(stage);
  if (before_.dag() != after_.dag()) {
    before_ = after_;
  } else {
    KILN_CHECK(before_.Apply(step).ok());
  }
}

const std::string& SourcePrinter::Loop(int stage, int loop) const {
  return names_.Loop(stage, before_.stage(stage).loops[loop].iter);
}

std::string SourcePrinter::Loops(int stage, const std::vector<int>& loops) const {
  std::string list;
  for (int loop : loops) {
    if (!list.empty()) list += ", ";
    list += Loop(stage, loop);
  }
  return list;
}

std::string SourcePrinter::Pieces(int stage, int loop, int pieces) {
  return names_.NamePieces(after_.stage(stage), stage, before_.stage(stage).loops[loop].iter, loop,
                           pieces);
}

std::string SourcePrinter::Fused(int stage, const std::vector<int>& loops) {
  std::vector<int32_t> parents;
  for (int loop : loops) parents.push_back(before_.stage(stage).loops[loop].iter);
  return names_.NameFused(after_.stage(stage), stage, parents, loops.empty() ? 0 : loops[0]);
}

const std::string& SourcePrinter::NewStage(int position, const std::vector<int>& resets) {
  names_.InsertStage(after_.stage(position), position);
  fresh_ = {position};
  for (const int reset : resets) {
    names_.DropLoops(before_.stage(reset - 1), reset);
    fresh_.push_back(reset);
  }
  return names_.Stage(position);
}

void SourcePrinter::FreshLoops() {
  for (int i = 0; i < after_.num_stages(); ++i) {
    if (after_.stage(i).op == before_.stage(i).op || after_.stage(i).is_placeholder()) continue;
    names_.DropLoops(before_.stage(i), i);
    fresh_.push_back(i);
  }
}

void SourcePrinter::DeclareAxes(int number) {
  const schedule::Stage& stage = after_.stage(number);
  if (stage.loops.empty()) return;
  const std::string axes = names_.NameAxes(stage, number);
  dialect_.axes(stage, names_.Stage(number), axes, *this);
}

std::string PrintPrimitives(const State& state) {
  SourcePrinter printer(state.initial_dag());
  for (const StepPtr& step : state.steps()) printer.Add(step);
  return std::move(printer).Finish();
}

}  // namespace kiln::schedule
