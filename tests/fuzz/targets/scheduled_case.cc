#include "tests/fuzz/targets/scheduled_case.h"

#include <map>
#include <string>

#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"

namespace kiln::fuzz {
namespace {

std::map<std::string, dag::DagPtr, std::less<>> MakeCases() {
  std::map<std::string, dag::DagPtr, std::less<>> cases;
  for (const dag::OpCase& one : dag::SmallOpCases()) cases.emplace(one.Name(), one.Build());
  return cases;
}

}  // namespace

dag::DagPtr OpCaseOf(std::string_view name) {
  static const auto* const cases = new auto(MakeCases());
  const auto found = cases->find(name);
  return found == cases->end() ? nullptr : found->second;
}

schedule::State CheckSource(const schedule::State& state) {
  const std::string source = schedule::PrintPrimitives(state);
  auto read = schedule::ParsePrimitives(state.initial_dag(), source);
  KILN_CHECK(read.ok(), "{}\n{}", Message(read.status()), source);
  KILN_CHECK(schedule::PrintLoops(*read) == schedule::PrintLoops(state), "{}", source);
  return *std::move(read);
}

}  // namespace kiln::fuzz
