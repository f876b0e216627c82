// A schedule in TVM's own primitives: the lines that follow a te.create_schedule.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/schedule/source/names.h"
#include "compiler/schedule/state.h"

namespace kiln::schedule {

// Words that the program uses itself, so that stages, loops and axes may not have them as names.
std::span<const std::string_view> TvmReservedWords();

// Returns "s[T]". An operator with several outputs is a list in Python, of which the first one is
// used.
std::string TvmStage(const Stage& stage, std::string_view name);

// Returns lines of Python, each ended. They expect a schedule `s`, and operators as variables with
// the names that SourceNames gives the state's stages with TvmReservedWords. Splits are those of
// TVM, in two. InvalidArgument: a step that TVM does not have, by its number, kind and stage.
StatusOr<std::string> TvmPrimitives(const State& state);

}  // namespace kiln::schedule
