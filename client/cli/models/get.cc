// kiln model get writes a kept model to a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "base/text/units.h"
#include "client/cli/models/commands.h"
#include "client/cli/session_flags.h"
#include "client/models.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

struct GetModelFlags {
  std::string name;
  // "": the name with ".kcm".
  std::string output;
};

Status GetModel(const GetModelFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
  KILN_ASSIGN_OR_RETURN(const std::string file, models->Get(flags.name));
  const std::string path = flags.output.empty() ? flags.name + ".kcm" : flags.output;
  KILN_RETURN_IF_ERROR(WriteFileAtomically(path, file));
  if (session.json) {
    fmt::print("{{\"model\":{},\"file\":{},\"bytes\":{}}}\n", JsonString(flags.name),
               JsonString(path), file.size());
  } else {
    fmt::print("{}: {}\n", path, FormatBytes(static_cast<int64_t>(file.size())));
  }
  return OkStatus();
}

}  // namespace

Run AddModelGet(CLI::App& get, SessionFlags& session) {
  const auto flags = std::make_shared<GetModelFlags>();
  get.description("write a model that is kept to a file");
  get.add_option("name", flags->name, "its name")->required();
  get.add_option("-o,--output", flags->output, "the file [NAME.kcm]");
  session.AddPlace(get);
  return Plain([flags](const Session& session) { return GetModel(*flags, session); });
}

}  // namespace kiln::client
