// kiln model show, list, get, put and delete handle existing models.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/terminal.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/model_commands.h"
#include "client/cli/model_source.h"
#include "client/cli/model_text.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "compiler/features/features.h"
#include "search/policies/models.h"

namespace kiln::client {
namespace {

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

std::string HeldOutCell(const costmodel::ModelInfo& info) {
  if (!info.held_out.has_value() || info.held_out->tasks.empty()) return "-";
  return fmt::format("{:.3f}", costmodel::MeanOf(info.held_out->tasks).spearman);
}

}  // namespace

Status ShowModelCommand(const ShowModelFlags& flags, const Session& session) {
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

Status ListModelsCommand(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
  KILN_ASSIGN_OR_RETURN(const std::vector<v1::CostModel> kept, models->List());
  Table table({{"Model"},
               {"Kind"},
               {"Trained"},
               {"Programs", Table::kRight},
               {"Tasks", Table::kRight},
               {"Correlation", Table::kRight},
               {"Size", Table::kRight}});
  for (const v1::CostModel& model : kept) {
    const auto info = costmodel::ParseModelInfo(model.info());
    if (session.json) {
      fmt::print("{{\"model\":{},\"created_s\":{},\"bytes\":{},\"info\":{}}}\n",
                 JsonString(model.name()), model.created_s(), model.bytes(),
                 info.ok() ? costmodel::PrintModelInfo(*info) : "null");
    } else if (!info.ok()) {
      table.AddRow({OneLine(model.name()), "of another version", TimeText(model.created_s()), "-",
                    "-", "-", FormatBytes(static_cast<int64_t>(model.bytes()))});
    } else {
      table.AddRow({OneLine(model.name()), info->calibration.empty() ? "trees" : "over estimates",
                    TimeText(info->trained_s), FormatCount(info->programs()),
                    FormatCount(std::ssize(info->tasks)), HeldOutCell(*info),
                    FormatBytes(static_cast<int64_t>(model.bytes()))});
    }
  }
  if (session.json) return OkStatus();
  if (kept.empty()) {
    fmt::print("no cost model in {}; {} makes one\n", models->Name(),
               session.Command("model train --name NAME"));
    return OkStatus();
  }
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  return OkStatus();
}

Status GetModelCommand(const std::string& name, const std::string& output, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
  KILN_ASSIGN_OR_RETURN(const std::string file, models->Get(name));
  const std::string path = output.empty() ? name + ".kcm" : output;
  KILN_RETURN_IF_ERROR(WriteFileAtomically(path, file));
  if (session.json) {
    fmt::print("{{\"model\":{},\"file\":{},\"bytes\":{}}}\n", JsonString(name), JsonString(path),
               file.size());
  } else {
    fmt::print("{}: {}\n", path, FormatBytes(static_cast<int64_t>(file.size())));
  }
  return OkStatus();
}

Status PutModelCommand(const std::string& path, const std::string& name, bool replace,
                       const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, costmodel::kMostModelFileBytes));
  const std::string kept = name.empty() ? std::filesystem::path(path).stem().string() : name;
  KILN_RETURN_IF_ERROR(Annotate(costmodel::ParseModelFile(file).status(), path));
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels(/*write=*/true));
  const auto model = models->Put(kept, file, replace);
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

Status DeleteModelCommand(const std::string& name, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
  KILN_RETURN_IF_ERROR(models->Delete(name));
  if (!session.json) fmt::print("{} is gone from {}\n", name, models->Name());
  return OkStatus();
}

}  // namespace kiln::client
