// kiln model show prints what a model was trained on, how well it ranks, and what it looks at.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "client/cli/models/commands.h"
#include "client/cli/models/model_records.h"
#include "client/cli/models/model_text.h"
#include "client/cli/session_flags.h"
#include "client/jobs/model_source.h"
#include "client/view/json.h"
#include "compiler/features/features.h"
#include "costmodel/column_importance.h"
#include "costmodel/model_file.h"
#include "search/policies/models.h"

namespace kiln::client {
namespace {

struct ShowModelFlags {
  // A file, or the name of a kept model.
  std::string model;
  // Number of columns shown, the most important ones; 0: all.
  int columns = 20;
};

std::string ImportanceJson(const std::vector<costmodel::ColumnImportance>& importance) {
  std::string text = "[";
  for (const costmodel::ColumnImportance& column : importance) {
    text += fmt::format(
        "{}{{\"column\":{},\"gain\":{},\"splits\":{}}}", text.size() > 1 ? "," : "",
        JsonString(std::string(features::FeatureNames()[static_cast<size_t>(column.column)])),
        column.gain, column.splits);
  }
  return text + "]";
}

Status ShowModel(const ShowModelFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file, ReadModelSource(flags.model, session));
  KILN_ASSIGN_OR_RETURN(const search::TrainedModel model, search::OpenTrainedModel(file));
  const auto importance = model.model->Importance();
  if (session.json) {
    fmt::print("{{\"model\":{},\"bytes\":{},\"info\":{},\"importance\":{}}}\n",
               JsonString(flags.model), file.model.size(), costmodel::PrintModelInfo(file.info),
               ImportanceJson(importance));
    return OkStatus();
  }
  const int columns = OutputColumns(STDOUT_FILENO);
  fmt::print("{}\n{}\n{}", ModelText(flags.model, file), TasksTable(file.info, columns),
             ImportanceTable(importance, flags.columns, columns));
  return OkStatus();
}

}  // namespace

Run AddModelShow(CLI::App& show, SessionFlags& session) {
  const auto flags = std::make_shared<ShowModelFlags>();
  show.description("what a model was trained on, how well it ranks, and what it looks at");
  AddModel(show, flags->model);
  show.add_option("--columns", flags->columns,
                  "so many of the columns of features, the most important ones; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  session.AddPlace(show);
  return Plain([flags](const Session& session) { return ShowModel(*flags, session); });
}

}  // namespace kiln::client
