#include "client/check/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/arrays/packed_key.h"
#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/numbers/median.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "runtime/network_file.h"
#include "scheduler/words/format.h"
#include "store/measure_log.h"

namespace kiln::client {
namespace {

using Json = nlohmann::ordered_json;
using Verdict = ComparedTask::Verdict;

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr std::string_view kNetworkMagic = "KILN-NET";
// Programs that differ by less are as fast as each other.
constexpr double kLeastChange = 0.01;
// Half of the interval of a ratio of times whose own intervals are not known.
constexpr double kUnknownConfidence = 0.05;

double NumberOf(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : 0;
}

std::string TextOf(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

// Keeps the faster one of two programs of a computation.
void Add(BaselineTask task, Baseline& baseline) {
  if (!(task.cost_s > 0) || !std::isfinite(task.cost_s)) return;
  for (BaselineTask& known : baseline.tasks) {
    if (known.workload_key != task.workload_key) continue;
    if (task.cost_s < known.cost_s) known = std::move(task);
    return;
  }
  baseline.tasks.push_back(std::move(task));
}

Status AddNetwork(const std::string& path, Baseline& baseline) {
  KILN_ASSIGN_OR_RETURN(const auto file,
                        runtime::NetworkFile::Open(path, {.check_constants = false}));
  for (const runtime::NetworkKernel& kernel : file->network().kernels) {
    Add({.workload_key = kernel.workload_key, .cost_s = kernel.expected_s}, baseline);
  }
  return OkStatus();
}

// Takes the tasks of the last event "end".
void AddResult(const Json& event, Baseline& baseline) {
  const auto tasks = event.find("tasks");
  if (TextOf(event, "event") != "end" || tasks == event.end() || !tasks->is_array()) return;
  baseline.tasks.clear();
  for (const Json& task : *tasks) {
    if (!task.is_object()) continue;
    Add({.workload_key = TextOf(task, "workload_key"),
         .steps = TextOf(task, "steps"),
         .cost_s = NumberOf(task, "best_cost_s"),
         .confidence_s = NumberOf(task, "confidence_s")},
        baseline);
  }
}

Status AddLogLine(const std::string& line, Baseline& baseline) {
  KILN_ASSIGN_OR_RETURN(store::MeasureLogLine record, store::ParseMeasureLogLine(line));
  if (record.error_no != 0 || record.costs_s.empty()) return OkStatus();
  const MedianCost cost = MedianOf(record.costs_s);
  const bool packed = record.layout_rewrite_option == kPreTransformed;
  Add({.workload_key = packed ? PackedKey(record.workload_key) : record.workload_key,
       .steps = record.steps_json,
       .cost_s = cost.cost_s,
       .confidence_s = cost.confidence_s},
      baseline);
  return OkStatus();
}

Status AddText(const std::string& text, Baseline& baseline) {
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (store::IsMeasureLogComment(line)) continue;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return InvalidArgument("line {} is no JSON object", number);
    if (json.contains("event")) {
      AddResult(json, baseline);
      continue;
    }
    const Status added = AddLogLine(line, baseline);
    if (!added.ok()) return Annotate(added, fmt::format("line {}", number));
  }
  return OkStatus();
}

// Sets the verdict by the ratio and its interval.
void Judge(ComparedTask& task) {
  const double least = std::max(task.confidence, kLeastChange);
  task.verdict = task.ratio > 1 + least   ? Verdict::kSlower
                 : task.ratio < 1 - least ? Verdict::kFaster
                                          : Verdict::kSame;
}

void CompareRecorded(const BaselineTask& before, const v1::Record& after, ComparedTask& task) {
  task.before_s = before.cost_s;
  task.after_s = CostOf(after.result());
  task.ratio = task.after_s / task.before_s;
  const double after_confidence = after.result().confidence_s();
  task.confidence = before.confidence_s > 0 && after_confidence > 0
                        ? task.ratio * std::hypot(before.confidence_s / task.before_s,
                                                  after_confidence / task.after_s)
                        : kUnknownConfidence;
  Judge(task);
}

// Measures both programs in turns, so that what the device does meanwhile meets both.
Status CompareMeasured(const BaselineTask& before, const v1::Record& after,
                       const MeasureSteps& measure, int turns, ComparedTask& task) {
  std::vector<double> ratios, before_s, after_s;
  for (int turn = 0; turn < turns; ++turn) {
    KILN_ASSIGN_OR_RETURN(before_s.emplace_back(), measure(after.dag(), before.steps));
    KILN_ASSIGN_OR_RETURN(after_s.emplace_back(), measure(after.dag(), after.steps()));
    if (!(before_s.back() > 0) || !(after_s.back() > 0)) return Internal("a time is not positive");
    ratios.push_back(after_s.back() / before_s.back());
  }
  const MedianCost ratio = MedianOf(ratios);
  task.measured = true;
  task.before_s = MedianOf(before_s).cost_s;
  task.after_s = MedianOf(after_s).cost_s;
  task.ratio = ratio.cost_s;
  task.confidence = ratio.confidence_s;
  Judge(task);
  return OkStatus();
}

// Returns the job's best record of a task; null if it has none.
const v1::Record* BestOf(const std::vector<v1::Record>& best, int task) {
  for (const v1::Record& record : best) {
    if (record.task_index() == static_cast<uint32_t>(task)) return &record;
  }
  return nullptr;
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSame:
      return "as fast";
    case Verdict::kSlower:
      return "SLOWER";
    case Verdict::kNotCompared:
      return "not compared";
  }
  return "not compared";
}

int64_t Count(const std::vector<ComparedTask>& tasks, Verdict verdict) {
  return std::ranges::count(tasks, verdict, &ComparedTask::verdict);
}

}  // namespace

const BaselineTask* Baseline::Find(const std::string& workload_key) const {
  const auto at = std::ranges::find(tasks, workload_key, &BaselineTask::workload_key);
  return at == tasks.end() ? nullptr : &*at;
}

StatusOr<Baseline> ReadBaseline(const std::string& path) {
  Baseline baseline{.path = path};
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  const Status read =
      text.starts_with(kNetworkMagic) ? AddNetwork(path, baseline) : AddText(text, baseline);
  if (!read.ok()) {
    return InvalidArgument(
        "the baseline {} cannot be read: {}; expected a log of records, the output of `kiln tune "
        "--json` or a compiled network",
        path, Message(read));
  }
  if (!baseline.tasks.empty()) return baseline;
  return InvalidArgument(
      "the baseline {} has no times; expected a log of records, the output of `kiln tune --json` "
      "or a compiled network",
      path);
}

std::vector<ComparedTask> CompareWithBaseline(const Baseline& baseline, const v1::JobStatus& job,
                                              const std::vector<v1::Record>& best,
                                              const MeasureSteps& measure, const std::string& why,
                                              int turns) {
  std::vector<ComparedTask> tasks;
  for (int i = 0; i < job.tasks_size(); ++i) {
    const v1::TaskStatus& status = job.tasks(i);
    ComparedTask& task = tasks.emplace_back();
    task.name = status.spec().description();
    const BaselineTask* before = baseline.Find(status.workload_key());
    const v1::Record* after = BestOf(best, i);
    if (before == nullptr) {
      task.remark = "the baseline does not have it";
      continue;
    }
    if (after == nullptr) {
      task.before_s = before->cost_s;
      task.remark = "the job has no program for it";
      continue;
    }
    Status measured = OkStatus();
    if (measure == nullptr || before->steps.empty()) {
      task.remark = measure == nullptr ? why : "the baseline has no program, its time is recorded";
    } else {
      measured = CompareMeasured(*before, *after, measure, turns, task);
      if (measured.ok()) continue;
      task.remark = fmt::format("the times are recorded ones: {}", Message(measured));
    }
    CompareRecorded(*before, *after, task);
  }
  return tasks;
}

bool AnySlower(const std::vector<ComparedTask>& tasks) {
  return Count(tasks, Verdict::kSlower) > 0;
}

std::string ComparedTable(const std::vector<ComparedTask>& tasks, const std::string& path,
                          int columns) {
  constexpr int kLeast = 12, kLines = 6;
  Table table({{"Task", Table::kLeft, kLeast, kLines},
               {"Baseline", Table::kRight},
               {"Now", Table::kRight},
               {"Ratio", Table::kRight},
               {"Verdict", Table::kLeft, kLeast, kLines}});
  const auto seconds = [](double s) { return s > 0 ? FormatSeconds(s) : std::string("-"); };
  for (const ComparedTask& task : tasks) {
    std::string verdict(VerdictName(task.verdict));
    if (!task.remark.empty()) verdict += "; " + task.remark;
    table.AddRow(
        {task.name, seconds(task.before_s), seconds(task.after_s),
         task.ratio > 0 ? fmt::format("{:.3f} +- {:.3f}", task.ratio, task.confidence) : "-",
         std::move(verdict)});
  }
  return fmt::format("{}\n{}: {} faster, {} as fast, {} slower than {} says, {} not compared\n",
                     table.ToString(columns), Counted(std::ssize(tasks), "task"),
                     Count(tasks, Verdict::kFaster), Count(tasks, Verdict::kSame),
                     Count(tasks, Verdict::kSlower), path, Count(tasks, Verdict::kNotCompared));
}

std::string ComparedJson(const std::vector<ComparedTask>& tasks, const std::string& path) {
  const auto or_null = [](double number) { return number > 0 ? Json(number) : Json(nullptr); };
  Json rows = Json::array();
  for (const ComparedTask& task : tasks) {
    rows.push_back({{"task", task.name},
                    {"verdict", VerdictName(task.verdict)},
                    {"measured", task.measured},
                    {"baseline_s", or_null(task.before_s)},
                    {"now_s", or_null(task.after_s)},
                    {"ratio", or_null(task.ratio)},
                    {"confidence", task.confidence},
                    {"remark", task.remark}});
  }
  const Json json = {{"event", "baseline"}, {"baseline", path}, {"tasks", rows}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kiln::client
