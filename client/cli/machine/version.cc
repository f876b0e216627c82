// kiln version prints the version, and those of the libraries.
#include "client/cli/version.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/machine/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

Status PrintVersion(const Session& session) {
  if (!session.json) {
    fmt::print("{}\n", VersionText());
    return OkStatus();
  }
  std::string fields;
  for (const auto& [name, version] : Versions()) {
    fields += fmt::format("{}{}:{}", fields.empty() ? "" : ",", JsonString(name),
                          version.empty() ? "null" : JsonString(version));
  }
  fmt::print("{{{}}}\n", fields);
  return OkStatus();
}

}  // namespace

Run AddVersion(CLI::App& version, SessionFlags& session) {
  version.description("print the version");
  session.AddJson(version);
  return Plain(PrintVersion);
}

}  // namespace kiln::client
