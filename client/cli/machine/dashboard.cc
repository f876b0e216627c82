// kiln dashboard opens the scheduler's pages in a browser.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/process/background.h"
#include "base/server/net.h"
#include "client/cli/machine/commands.h"
#include "client/cli/machine/dashboard_url.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/service_call.h"

namespace kiln::client {
namespace {

struct DashboardFlags {
  bool print = false;
};

bool HasDisplay() {
  std::string display, wayland;
  ReadVariable("DISPLAY", display);
  ReadVariable("WAYLAND_DISPLAY", wayland);
  return !display.empty() || !wayland.empty();
}

// Returns the path of the program that opens an address in the user's browser; nullopt: there is
// none, or no screen to show it on.
std::optional<std::string> Opener() {
  if (!HasDisplay()) return std::nullopt;
  std::string folders;
  ReadVariable("PATH", folders);
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    const std::string path = folders.substr(0, end) + "/xdg-open";
    if (access(path.c_str(), X_OK) == 0) return path;
    folders = end == std::string::npos ? "" : folders.substr(end + 1);
  }
  return std::nullopt;
}

StatusOr<v1::OpenDashboardReply> Ask(const Session& session) {
  if (session.scheduler.empty()) {
    return FailedPrecondition(
        "the pages are a scheduler's: name it with --scheduler HOST:PORT or in KILN_SCHEDULER; "
        "`kiln farm up` starts one on this machine");
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return Call(*client->stub(), &v1::Scheduler::Stub::OpenDashboard, v1::OpenDashboardRequest());
}

Status Open(const DashboardFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const v1::OpenDashboardReply door, Ask(session));
  KILN_ASSIGN_OR_RETURN(const std::string url, DashboardUrl(session.scheduler, door));
  if (session.json) {
    const nlohmann::ordered_json json = {{"url", url}, {"valid_s", door.token_s()}};
    fmt::print("{}\n", json.dump());
    return OkStatus();
  }
  const std::optional<std::string> opener = flags.print ? std::nullopt : Opener();
  if (opener.has_value()) {
    KILN_RETURN_IF_ERROR(StartInBackground({*opener, url}, "/dev/null").status());
  }
  fmt::print("{}\n", url);
  if (!flags.print) {
    fmt::print(stderr, "{}; the address lets one browser in, within {} s\n",
               opener.has_value() ? "the browser opens it" : "open it in a browser",
               door.token_s());
  }
  return OkStatus();
}

}  // namespace

Run AddDashboard(CLI::App& dashboard, SessionFlags& session) {
  const auto flags = std::make_shared<DashboardFlags>();
  dashboard.description("open the scheduler's pages in a browser");
  dashboard.add_flag("--print", flags->print, "print the address and open nothing");
  session.AddScheduler(dashboard);
  return Plain([flags](const Session& session) { return Open(*flags, session); });
}

}  // namespace kiln::client
