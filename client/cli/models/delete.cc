// kiln model delete deletes a kept model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/models/commands.h"
#include "client/cli/session_flags.h"
#include "client/models.h"

namespace kiln::client {
namespace {

struct DeleteModelFlags {
  std::string name;
};

Status DeleteModel(const DeleteModelFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
  KILN_RETURN_IF_ERROR(models->Delete(flags.name));
  if (!session.json) fmt::print("{} is gone from {}\n", flags.name, models->Name());
  return OkStatus();
}

}  // namespace

Run AddModelDelete(CLI::App& remove, SessionFlags& session) {
  const auto flags = std::make_shared<DeleteModelFlags>();
  remove.description("delete a model that is kept, for good");
  remove.add_option("name", flags->name, "its name")->required();
  session.AddPlace(remove);
  return Plain([flags](const Session& session) { return DeleteModel(*flags, session); });
}

}  // namespace kiln::client
