// kiln audit prints who did what to the farm.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/console/terminal.h"
#include "base/text/utf8.h"
#include "client/cli/record_filter.h"
#include "client/cli/session_flags.h"
#include "client/cli/users/commands.h"
#include "client/client.h"
#include "client/service_call.h"
#include "client/view/json.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Least columns of a cell that may be cut.
constexpr int kMinColumns = 12;
constexpr int kMaxLines = 4;

struct AuditFlags {
  std::string user, since;
  uint32_t limit = 50;
};

Status ShowAudit(const AuditFlags& flags, const Session& session) {
  v1::ListAuditRequest request;
  request.set_user(flags.user);
  request.set_limit(flags.limit);
  if (!flags.since.empty()) {
    KILN_ASSIGN_OR_RETURN(const int64_t since_s,
                          ParseTime(flags.since, absl::ToUnixSeconds(Clock::Real().Now())));
    request.set_since_s(static_cast<double>(since_s));
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const v1::ListAuditReply reply,
                        Call(*client->stub(), &v1::Scheduler::Stub::ListAudit, request));
  if (session.json) {
    for (const v1::AuditEntry& entry : reply.entries()) fmt::print("{}\n", JsonOf(entry));
    return OkStatus();
  }
  if (reply.entries().empty()) {
    fmt::print("nothing was done{}{}\n", flags.user.empty() ? "" : " by " + flags.user,
               flags.since.empty() ? "" : " since " + flags.since);
    return OkStatus();
  }
  Table table({{"Time"},
               {"User", Table::kLeft, kMinColumns},
               {"Call"},
               {"For", Table::kLeft, kMinColumns, kMaxLines},
               {"Refused", Table::kLeft, kMinColumns, kMaxLines}});
  for (const v1::AuditEntry& entry : reply.entries()) {
    std::string call = entry.call();
    if (const size_t dot = call.find('.'); dot != std::string::npos) call.erase(0, dot + 1);
    table.AddRow({TimeText(static_cast<int64_t>(entry.at_s())),
                  entry.user().empty() ? "-" : Printable(entry.user()), Printable(call),
                  Printable(entry.subject()), Printable(entry.refused())});
  }
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  return OkStatus();
}

}  // namespace

Run AddAudit(CLI::App& audit, SessionFlags& session) {
  const auto flags = std::make_shared<AuditFlags>();
  audit.description("who did what to the farm, the newest first; refused calls too");
  audit.add_option("--user", flags->user, "only what this user did");
  audit.add_option("--since", flags->since,
                   "only from this time on: 30m, 12h, 7d ago, or 2026-11-21");
  audit.add_option("--limit", flags->limit, "show this many of the newest entries")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
  session.AddScheduler(audit);
  return Plain([flags](const Session& session) { return ShowAudit(*flags, session); });
}

}  // namespace kiln::client
