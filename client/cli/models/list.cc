// kiln model list prints the models that are kept.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/cli/models/commands.h"
#include "client/cli/session_flags.h"
#include "client/models.h"
#include "client/view/json.h"
#include "costmodel/model_file.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

std::string HeldOutCell(const costmodel::ModelInfo& info) {
  if (!info.held_out.has_value() || info.held_out->tasks.empty()) return "-";
  return fmt::format("{:.3f}", costmodel::MeanOf(info.held_out->tasks).spearman);
}

Status ListModels(const Session& session) {
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

}  // namespace

Run AddModelList(CLI::App& list, SessionFlags& session) {
  list.description("the models that are kept");
  session.AddPlace(list);
  return Plain(ListModels);
}

}  // namespace kiln::client
