// A schedule in TVM's own primitives: the lines that follow a te.create_schedule.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/schedule/source/names.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Words that the program uses for itself: no names of stages, loops and axes.
std::span<const std::string_view> TvmReservedWords();

// "s[T]": of an operator with several outputs, which is a list in Python, its first one.
std::string TvmStage(const Stage& stage, std::string_view name);

// Lines, each ended, of Python: a schedule `s`, and operators as variables with the names that
// SourceNames gives the state's stages with TvmReservedWords. Splits are those of TVM, in two.
// InvalidArgument: a step that TVM does not have, by its number, kind and stage.
StatusOr<std::string> TvmPrimitives(const State& state);

}  // namespace kiln::schedule
