// kiln model put keeps the model of a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file/file.h"
#include "client/cli/models/commands.h"
#include "client/cli/session_flags.h"
#include "client/models.h"
#include "client/view/json.h"
#include "costmodel/model_file.h"

namespace kiln::client {
namespace {

struct PutModelFlags {
  std::string path;
  // "": the name of the file.
  std::string name;
  bool replace = false;
};

Status PutModel(const PutModelFlags& flags, const Session& session) {
  const std::string& path = flags.path;
  KILN_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, costmodel::kMaxModelFileBytes));
  const std::string kept =
      flags.name.empty() ? std::filesystem::path(path).stem().string() : flags.name;
  KILN_RETURN_IF_ERROR(Annotate(costmodel::ParseModelFile(file).status(), path));
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels(/*write=*/true));
  const auto model = models->Put(kept, file, flags.replace);
  if (model.status().code() == StatusCode::kAlreadyExists) {
    return AlreadyExists("{} in {}: --replace takes its place, --name gives this one another name",
                         Message(model.status()), models->Name());
  }
  KILN_RETURN_IF_ERROR(model.status());
  if (session.json) {
    fmt::print("{{\"model\":{},\"bytes\":{}}}\n", JsonString(model->name()), model->bytes());
  } else {
    fmt::print("{} is kept in {} as {}\n", path, models->Name(), model->name());
  }
  return OkStatus();
}

}  // namespace

Run AddModelPut(CLI::App& put, SessionFlags& session) {
  const auto flags = std::make_shared<PutModelFlags>();
  put.description("keep the model of a file in the database or scheduler");
  put.add_option("file", flags->path, "the file")->required();
  put.add_option("--name", flags->name, "under this name [that of the file]");
  put.add_flag("--replace", flags->replace, "in place of the one that is there");
  session.AddPlace(put);
  return Plain([flags](const Session& session) { return PutModel(*flags, session); });
}

}  // namespace kiln::client
