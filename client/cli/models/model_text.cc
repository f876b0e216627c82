#include "client/cli/models/model_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/view/json.h"
#include "compiler/features/features.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kMinColumns = 10;

std::string NameOf(const std::string& description, const std::string& key) {
  return OneLine(description.empty() ? key : description);
}

std::string DeviceCell(const std::string& device) { return device.empty() ? "-" : OneLine(device); }

std::string Percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::vector<std::string> QualityCells(const costmodel::RankQuality& quality) {
  return {fmt::format("{:.3f}", quality.spearman), Percent(quality.pairwise),
          Percent(quality.recall), Percent(quality.peak)};
}

std::vector<Table::Column> QualityColumns(int k) {
  return {{"Correlation", Table::kRight},
          {"Pairs", Table::kRight},
          {fmt::format("Recall@{}", k), Table::kRight},
          {fmt::format("Best@{}", k), Table::kRight}};
}

std::string HeldOutText(const costmodel::ModelInfo& info) {
  if (!info.held_out.has_value()) return "nothing, so that nothing is known of how well it ranks";
  const costmodel::HeldOut& held_out = *info.held_out;
  int64_t programs = 0;
  if (held_out.turns > 0 && held_out.tasks.empty())
    return "nothing; how well it ranks is not known: no task has 5 programs that worked";
  for (const costmodel::TaskQuality& tested : held_out.tasks) programs += tested.task.programs;
  if (held_out.turns > 0) {
    return fmt::format("nothing: each of {} was tested by a model of {} of the others, seed {}",
                       Counted(programs, "program"), Percent(1 - held_out.share), info.seed);
  }
  return fmt::format("{} of the {}, seed {}: {} of {}", Percent(held_out.share),
                     held_out.by_computation ? "computations" : "records of each task", info.seed,
                     Counted(programs, "program"), Counted(std::ssize(held_out.tasks), "task"));
}

}  // namespace

std::string KindText(const costmodel::ModelInfo& info) {
  return info.kind +
         (info.calibration.empty() ? ", trees alone" : " over estimates of the analytic model");
}

std::string LearnedText(const costmodel::ModelInfo& info) {
  return fmt::format("{} of {}, {} failed", Counted(info.programs(), "program"),
                     Counted(std::ssize(info.tasks), "task"), FormatCount(info.failed()));
}

std::string QualityText(const costmodel::RankQuality& mean, int k) {
  return fmt::format(
      "rank correlation {:.3f}; {} of pairs in the right order; of the {} fastest {} are among the "
      "{} highest scores, the best of which has {} of the best speed",
      mean.spearman, Percent(mean.pairwise), k, Percent(mean.recall), k, Percent(mean.peak));
}

std::string QualityTable(const std::vector<v1::ModelQuality>& tasks, int k, int columns) {
  std::vector<Table::Column> all = {{"Task", Table::kLeft, kMinColumns},
                                    {"Target", Table::kLeft, kMinColumns},
                                    {"Device", Table::kLeft, kMinColumns},
                                    {"Programs", Table::kRight},
                                    {"Best", Table::kRight}};
  for (Table::Column& column : QualityColumns(k)) all.push_back(std::move(column));
  Table table(std::move(all));
  for (const v1::ModelQuality& task : tasks) {
    std::vector<std::string> cells = {
        NameOf(task.description(), task.workload_key()), OneLine(ShortTarget(task.target())),
        DeviceCell(task.device()), FormatCount(static_cast<int64_t>(task.programs())),
        LatencyCell(task.best_s())};
    const costmodel::RankQuality quality = {task.spearman(), task.pairwise(), task.recall(),
                                            task.peak()};
    for (std::string& cell : QualityCells(quality)) cells.push_back(std::move(cell));
    table.AddRow(std::move(cells));
  }
  return table.ToString(columns);
}

std::string QualityJson(const v1::ModelQuality& task) {
  return fmt::format(
      "{{\"task\":{},\"workload_key\":{},\"workload_id\":{},\"target\":{},\"device\":{},"
      "\"programs\":{},\"failed\":{},\"best_s\":{},\"spearman\":{},\"pairwise\":{},\"recall\":{},"
      "\"peak\":{}}}",
      JsonString(task.description()), JsonString(task.workload_key()),
      JsonString(task.workload_id()), JsonString(task.target()), JsonString(task.device()),
      task.programs(), task.failed(), task.best_s(), task.spearman(), task.pairwise(),
      task.recall(), task.peak());
}

costmodel::RankQuality MeanQuality(const std::vector<v1::ModelQuality>& tasks) {
  std::vector<costmodel::RankQuality> all;
  for (const v1::ModelQuality& task : tasks)
    all.push_back({task.spearman(), task.pairwise(), task.recall(), task.peak()});
  return costmodel::MeanOf(all);
}

std::string ModelText(const std::string& label, const costmodel::ModelFile& file) {
  const costmodel::ModelInfo& info = file.info;
  std::string text = fmt::format("{}: {}, {}\n", label, KindText(info),
                                 FormatBytes(static_cast<int64_t>(file.model.size())));
  text += fmt::format("trained    {}, on {}; {} of {}, seed {}\n", TimeText(info.trained_s),
                      LearnedText(info), Counted(info.records, "record"),
                      OneLine(fmt::to_string(fmt::join(info.sources, ", "))), info.seed);
  if (!info.parameters.empty()) {
    std::vector<std::string> parameters;
    for (const auto& [name, value] : info.parameters)
      parameters.push_back(fmt::format("{}={}", name, value));
    text += fmt::format("parameters {}\n", fmt::join(parameters, " "));
  }
  text += fmt::format("features   version {}, columns {}\n", info.feature_version, info.columns);
  text += fmt::format("held out   {}\n", HeldOutText(info));
  if (info.held_out.has_value() && !info.held_out->tasks.empty()) {
    text += fmt::format("           {}\n",
                        QualityText(costmodel::MeanOf(info.held_out->tasks), info.held_out->k));
  }
  return text;
}

std::string TasksTable(const costmodel::ModelInfo& info, int columns) {
  std::vector<Table::Column> all = {
      {"Task", Table::kLeft, kMinColumns},   {"Target", Table::kLeft, kMinColumns},
      {"Device", Table::kLeft, kMinColumns}, {"Learned", Table::kRight},
      {"Held out", Table::kRight},           {"Best", Table::kRight}};
  const int k = info.held_out.has_value() ? info.held_out->k : 0;
  if (k > 0) {
    for (Table::Column& column : QualityColumns(k)) all.push_back(std::move(column));
  }
  Table table(std::move(all));
  std::map<std::string, costmodel::TaskQuality> tested;
  const auto name_of = [](const costmodel::ModelTask& task) {
    return task.workload_id + "\n" + task.target + "\n" + task.device;
  };
  if (info.held_out.has_value()) {
    for (const costmodel::TaskQuality& one : info.held_out->tasks)
      tested.emplace(name_of(one.task), one);
  }
  const auto add = [&](const costmodel::ModelTask& task, int64_t learned,
                       const costmodel::TaskQuality* quality) {
    std::vector<std::string> cells = {NameOf(task.description, task.workload_key),
                                      OneLine(ShortTarget(task.target)),
                                      DeviceCell(task.device),
                                      FormatCount(learned),
                                      FormatCount(quality != nullptr ? quality->task.programs : 0),
                                      LatencyCell(task.best_s)};
    if (k > 0) {
      for (std::string& cell :
           quality != nullptr ? QualityCells(quality->quality) : std::vector<std::string>(4, "-"))
        cells.push_back(std::move(cell));
    }
    table.AddRow(std::move(cells));
  };
  for (const costmodel::ModelTask& task : info.tasks) {
    const auto found = tested.find(name_of(task));
    add(task, task.programs, found == tested.end() ? nullptr : &found->second);
    if (found != tested.end()) tested.erase(found);
  }
  for (const auto& [name, quality] : tested) add(quality.task, 0, &quality);
  return table.ToString(columns);
}

std::string ImportanceTable(const std::vector<costmodel::ColumnImportance>& importance, int most,
                            int columns) {
  double gain = 0;
  for (const costmodel::ColumnImportance& column : importance) gain += column.gain;
  const size_t shown =
      most == 0 ? importance.size() : std::min(importance.size(), static_cast<size_t>(most));
  Table table({{"Column"}, {"Gain", Table::kRight}, {"Splits", Table::kRight}});
  const auto names = features::FeatureNames();
  for (const costmodel::ColumnImportance& column : std::span(importance).first(shown)) {
    table.AddRow({std::string(names[static_cast<size_t>(column.column)]),
                  fmt::format("{:.1f}%", gain > 0 ? 100 * column.gain / gain : 0),
                  FormatCount(column.splits)});
  }
  std::string text = table.ToString(columns);
  if (shown < importance.size()) {
    text += fmt::format("and {} more of {} columns\n", importance.size() - shown, names.size());
  }
  return text;
}

}  // namespace kiln::client
