// kiln doctor prints what this machine offers and lacks.
#include "client/check/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/console/terminal.h"
#include "client/cli/machine/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

Status PrintDiagnosis(const Session& session) {
  bool all_ok = true;
  constexpr int kMinColumns = 12;
  // Enough for all of a finding.
  constexpr int kMaxLines = 40;
  Table table({{""}, {"What"}, {"Finding", Table::kLeft, kMinColumns, kMaxLines}});
  const auto findings = Diagnose(session);
  for (const Finding& finding : findings) {
    all_ok &= finding.ok || finding.is_gap;
    if (session.json) {
      fmt::print("{{\"what\":{},\"ok\":{},\"gap\":{},\"detail\":{}}}\n", JsonString(finding.what),
                 finding.ok, finding.is_gap, JsonString(finding.detail));
    } else {
      table.AddRow({finding.ok       ? "ok"
                    : finding.is_gap ? "gap"
                                     : "BAD",
                    finding.what, finding.detail});
    }
  }
  if (!session.json) fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  if (all_ok) return OkStatus();
  return FailedPrecondition("something is missing: see the lines marked BAD");
}

}  // namespace

Run AddDoctor(CLI::App& doctor, SessionFlags& session) {
  doctor.description("what this machine offers and lacks");
  session.AddPlace(doctor);
  return Plain(PrintDiagnosis);
}

}  // namespace kiln::client
