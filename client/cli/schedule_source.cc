#include "client/cli/schedule_source.h"

#include <iostream>
#include <iterator>

#include "base/file/file.h"
#include "compiler/dag/limits.h"
#include "compiler/schedule/source/parse.h"

namespace kiln::client {
namespace {

StatusOr<std::string> ReadText(const std::string& path) {
  if (path != "-") return ReadFile(path);
  std::string text;
  for (std::istreambuf_iterator<char> at(std::cin), end; at != end; ++at) {
    text += *at;
    // The parser refuses such a text.
    if (text.size() > dag::kMaxTextBytes) break;
  }
  return text;
}

}  // namespace

StatusOr<schedule::State> ReadSchedule(const std::string& path, const dag::DagPtr& dag) {
  const std::string name = path == "-" ? "stdin" : path;
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  auto state = schedule::ParsePrimitives(dag, text);
  if (!state.ok()) return Annotate(state.status(), name);
  if (!state->concrete()) {
    return InvalidArgument("{}: a factor is 0, a blank of a sketch: expected numbers from 1 on",
                           name);
  }
  return state;
}

}  // namespace kiln::client
