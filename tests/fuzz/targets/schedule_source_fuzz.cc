// Reads schedules that are source. The first line names a case of the operator library
// (dag/ops/op_cases_testing), the rest is a schedule of it as people write it. A schedule that is
// read prints as a text that reads back as the same, and as a program of TVM or a refusal. A
// refusal names a line and a column.
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/tvm/program.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/scheduled_case.h"

namespace kiln::fuzz {
namespace {

void CheckState(const schedule::State& state) {
  const schedule::State read = CheckSource(state);
  KILN_CHECK(schedule::PrintSteps(read.steps()) == schedule::PrintSteps(state.steps()), "{}",
             schedule::PrintSteps(state.steps()));
  const auto program = schedule::TvmProgram(state, "llvm");
  if (!program.ok()) CheckRefusal(program.status());
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view text = fuzz::InputText(data, size);
  const std::string_view name = text.substr(0, text.find('\n'));
  const dag::DagPtr dag = fuzz::OpCaseOf(name);
  if (dag == nullptr) return -1;
  const auto state = schedule::ParsePrimitives(dag, text.substr(name.size()));
  if (state.ok()) {
    fuzz::CheckState(*state);
  } else {
    fuzz::CheckRefusal(state.status());
    KILN_CHECK(Message(state.status()).starts_with("line "), "{}", Message(state.status()));
  }
  return 0;
}
