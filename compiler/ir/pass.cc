#include "compiler/ir/pass.h"

#include "base/log.h"
#include "compiler/ir/program_text.h"

namespace kiln::ir {
namespace {

void LogPass(const PassReport& report) {
  KILN_DEBUG_LOG("passes", 1, "{}: {:.1f} us{}", report.name, report.seconds * 1e6,
                 report.changed ? ", changed the program" : "");
  if (report.changed) KILN_DEBUG_LOG("passes", 2, "{}", ProgramText(*report.program));
}

}  // namespace

const PassInstruments* InstrumentsOfEnvironment() {
  static const bool any = DebugLevel("verify") >= 1 || DebugLevel("passes") >= 1;
  static const PassInstruments instruments = {
      .observer = DebugLevel("passes") >= 1 ? LogPass : std::function<void(const PassReport&)>()};
  return any ? &instruments : nullptr;
}

Status PassRunner::RunInstrumented(std::string_view name, Program& program,
                                   absl::FunctionRef<void(Program&)> pass) {
  PassReport report{.name = name, .program = &program};
  report.left_out = instruments_->leave_out.contains(name);
  const std::string before = instruments_->observer ? ProgramText(program) : std::string();
  const double start = ThreadCpuSeconds();
  if (!report.left_out) pass(program);
  report.seconds = ThreadCpuSeconds() - start;
  const Status status = Verify(program);
  if (!status.ok()) return Internal("the program is broken after {}: {}", name, Message(status));
  if (!instruments_->observer) return OkStatus();
  report.before = before;
  report.changed = ProgramText(program) != before;
  instruments_->observer(report);
  return OkStatus();
}

}  // namespace kiln::ir
