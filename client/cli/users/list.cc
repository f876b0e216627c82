// kiln users list prints what each user has had of the devices, and what he may have.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/console/terminal.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/session_flags.h"
#include "client/cli/users/commands.h"
#include "client/client.h"
#include "client/service_call.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

// Least columns of a name in a table that is too wide.
constexpr int kMinColumns = 8;

// Returns "3 of 8", or "3" if there is no limit.
std::string OfLimit(const std::string& now, bool has_limit, const std::string& limit) {
  return has_limit ? fmt::format("{} of {}", now, limit) : now;
}

std::string CountOfLimit(uint64_t now, uint64_t limit) {
  return OfLimit(fmt::format("{}", now), limit > 0, fmt::format("{}", limit));
}

Status ListUsers(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_ASSIGN_OR_RETURN(
      const v1::ListUsersReply reply,
      Call(*client->stub(), &v1::Scheduler::Stub::ListUsers, v1::ListUsersRequest()));
  if (session.json) {
    for (const v1::UserShare& user : reply.users()) fmt::print("{}\n", JsonOf(user));
    return OkStatus();
  }
  if (reply.users().empty()) {
    fmt::print("nobody has used a device of this farm or has limits; {} sets some\n",
               session.Command("users set NAME --weight 2"));
    return OkStatus();
  }
  Table table({{"User", Table::kLeft, kMinColumns},
               {"Weight", Table::kRight},
               {"Device time", Table::kRight},
               {"Devices", Table::kRight},
               {"Jobs", Table::kRight},
               {"Trials today", Table::kRight},
               {"Stored", Table::kRight}});
  for (const v1::UserShare& user : reply.users()) {
    table.AddRow(
        {Printable(user.name()), fmt::format("{:g}", user.weight()),
         FormatElapsed(user.used_device_s()), CountOfLimit(user.devices_now(), user.devices()),
         CountOfLimit(user.jobs_now(), user.jobs()),
         CountOfLimit(user.trials_today(), user.trials_per_day()),
         OfLimit(FormatBytes(static_cast<int64_t>(user.stored_bytes_now())),
                 user.stored_bytes() > 0, FormatBytes(static_cast<int64_t>(user.stored_bytes())))});
  }
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  return OkStatus();
}

}  // namespace

Run AddUsersList(CLI::App& list, SessionFlags& session) {
  list.description("what each user has had of the devices, and what he may have");
  session.AddScheduler(list);
  return Plain([](const Session& session) { return ListUsers(session); });
}

}  // namespace kiln::client
