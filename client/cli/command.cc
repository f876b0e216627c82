#include "client/cli/command.h"

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "base/server/grpc_server.h"

namespace kiln::client {

Run Plain(std::function<Status(const Session& session)> run) {
  return [run = std::move(run)](const Session& session) -> StatusOr<int> {
    InitGrpc();
    KILN_RETURN_IF_ERROR(run(session));
    return 0;
  };
}

bool IsGiven(const CLI::Option* option) { return option != nullptr && option->count() > 0; }

CLI::Validator NotNegative() {
  const auto check = [](const std::string& value) {
    return value.starts_with('-')
               ? fmt::format("{} is below 0, expected a whole number from 0", value)
               : std::string();
  };
  return CLI::Validator(check, "");
}

}  // namespace kiln::client
