// kiln records measure: the schedules of a measure log, built, checked and timed on this machine's
// device.
#include "store/measure_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/packed_key.h"
#include "base/shell_word.h"
#include "base/terminal.h"
#include "client/cli/bindings.h"
#include "client/cli/commands.h"
#include "client/cli/computations.h"
#include "client/direct_trials.h"
#include "client/local_archive.h"
#include "client/log_lines.h"
#include "client/this_machine.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/schedule/fit.h"
#include "compiler/target/meaning.h"
#include "compiler/target/target.h"
#include "rpc/hardware_message.h"
#include "store/record.h"

namespace kiln::client {
namespace {

// Of the lines of a log: days of measuring.
constexpr size_t kMostLogBytes = size_t{256} << 20;

// The computation that the key of each line stands for, or why it is not known.
using WorkloadsByKey = std::map<std::string, StatusOr<NamedComputation>>;

StatusOr<NamedComputation> WorkloadOf(const std::string& key, Archive* archive) {
  std::vector<NamedComputation> computations;
  if (archive != nullptr) {
    KILN_ASSIGN_OR_RETURN(computations, ComputationsOf(key, *archive));
  } else {
    computations = KnownComputationsOf(key);
  }
  if (computations.size() == 1) return computations[0];
  if (computations.size() > 1) return SeveralFit("this key", computations);
  return NotFound(
      "no DAG is known for this key, neither by name nor in the database; --bind says what it "
      "stands "
      "for");
}

NamedComputation ComputationOf(const Binding& binding) {
  return {dag::WorkloadId(*binding.workload.dag), binding.workload.description,
          dag::PrintDag(*binding.workload.dag)};
}

// As bound, which the database keeps.
StatusOr<WorkloadsByKey> BoundWorkloads(const MeasureLogFlags& flags, const Session& session) {
  WorkloadsByKey workloads;
  KILN_ASSIGN_OR_RETURN(const std::vector<Binding> bindings, ParseBindings(flags.bind));
  if (bindings.empty()) return workloads;
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/true));
  for (const Binding& binding : bindings) {
    KILN_RETURN_IF_ERROR(Bind(binding, *archive).status());
    workloads.insert_or_assign(binding.key, ComputationOf(binding));
  }
  return workloads;
}

// Of the computation that the line is of (base/packed_key.h).
std::string ComputationKey(const store::MeasureLogLine& line) {
  return line.layout_rewrite_option == kPreTransformed ? PackedKey(line.workload_key)
                                                       : line.workload_key;
}

// With the tasks of the database, where there is a database.
WorkloadsByKey WorkloadsOf(const std::vector<store::MeasureLogLine>& lines, WorkloadsByKey bound,
                           const Session& session) {
  const auto archive = session.OpenArchive();
  WorkloadsByKey workloads = std::move(bound);
  for (const store::MeasureLogLine& line : lines) {
    for (const std::string& key : {ComputationKey(line), line.workload_key}) {
      if (workloads.contains(key)) continue;
      workloads.emplace(key, WorkloadOf(key, archive.ok() ? archive->get() : nullptr));
    }
  }
  return workloads;
}

double LoggedCost(const store::MeasureLogLine& line) {
  if (line.error_no != 0 || line.costs_s.empty()) return 0;
  double sum = 0;
  for (const double cost : line.costs_s) sum += cost;
  return sum / static_cast<double>(line.costs_s.size());
}

StatusOr<std::vector<store::MeasureLogLine>> ReadLog(const std::string& path) {
  std::vector<store::MeasureLogLine> lines;
  size_t bytes = 0;
  KILN_RETURN_IF_ERROR(VisitLog(path, [&](store::MeasureLogLine line) -> Status {
    bytes += sizeof(line) + line.workload_key.size() + line.target.size() + line.steps_json.size();
    lines.push_back(std::move(line));
    if (bytes <= kMostLogBytes) return OkStatus();
    return ResourceExhausted("the log has more than {} MiB up to here; measure it in parts",
                             kMostLogBytes >> 20);
  }));
  return lines;
}

// What the times of the log are worth beside those of this machine; "": they compare.
std::string OtherTargetText(const std::vector<store::MeasureLogLine>& lines,
                            const v1::WorkerState& here) {
  const auto others = std::ranges::count_if(lines, [&](const store::MeasureLogLine& line) {
    return !target::MeanSame(line.target, HardwareParamsOf(line.hardware.value_or(HardwareRow{})),
                             here.target(), HardwareParamsOf(here.hardware()));
  });
  if (others == 0) return "";
  return fmt::format("{} of {} lines are for another target: what they log is no comparison\n",
                     others, lines.size());
}

struct Row {
  std::string workload;
  double logged_s = 0, here_s = 0;
  std::string check;  // "right, error 1e-6", "wrong answer: ...", "skipped: ..."
  bool failed = false;
};

// Rows as they come, in columns: a long log says from the beginning what it finds.
class RowPrinter {
 public:
  explicit RowPrinter(const std::vector<std::string>& workloads)
      : columns_(OutputColumns(STDOUT_FILENO)) {
    for (const std::string& workload : workloads) {
      width_ = std::max(width_, DisplayWidth(workload));
    }
    if (columns_ > 0) width_ = std::clamp(columns_ - kOthers - kCheck, kLeast, width_);
    Print("Line", "Workload", "Logged us", "Here us", "Check");
    fmt::print("{}\n", Fitting(std::string(static_cast<size_t>(width_ + kOthers + 5), '-')));
  }

  void Print(size_t line, const Row& row) const {
    Print(std::to_string(line), row.workload, Us(row.logged_s), Us(row.here_s), row.check);
  }

 private:
  static constexpr int kOthers = 4 + 9 + 9 + 4 * 2;  // columns before the check, but the workload
  static constexpr int kCheck = 20;                  // what a narrow terminal leaves the check
  static constexpr int kLeast = 8;                   // and the workload

  static std::string Us(double cost_s) {
    return cost_s > 0 ? fmt::format("{:.2f}", 1e6 * cost_s) : std::string("-");
  }
  std::string Fitting(const std::string& line) const {
    return columns_ > 0 ? Elide(line, columns_) : line;
  }
  void Print(std::string_view line, std::string_view workload, std::string_view logged,
             std::string_view here, std::string_view check) const {
    fmt::print("{}\n", Fitting(fmt::format("{:>4}  {:<{}}  {:>9}  {:>9}  {}", line,
                                           Elide(workload, width_), width_, logged, here, check)));
    std::fflush(stdout);
  }

  const int columns_;  // 0: any number
  int width_ = kLeast;
};

void PrintJson(size_t line, const Row& row) {
  fmt::print(
      "{{\"line\":{},\"workload\":{},\"logged_cost_s\":{},\"cost_s\":{},\"ok\":{},"
      "\"check\":{}}}\n",
      line, JsonString(row.workload), row.logged_s > 0 ? fmt::format("{}", row.logged_s) : "null",
      row.here_s > 0 ? fmt::format("{}", row.here_s) : "null", !row.failed, JsonString(row.check));
  std::fflush(stdout);
}

class LogMeasurer {
 public:
  LogMeasurer(const MeasureLogFlags& flags, WorkloadsByKey workloads, DirectTrials& trials)
      : flags_(flags), workloads_(std::move(workloads)), trials_(trials) {}

  // As the rows will say.
  std::vector<std::string> Workloads(const std::vector<store::MeasureLogLine>& lines) const {
    std::vector<std::string> workloads;
    for (const store::MeasureLogLine& line : lines) {
      const auto& workload = workloads_.at(KeyOf(line));
      workloads.push_back(workload.ok() ? workload->description : line.workload_key);
    }
    return workloads;
  }

  StatusOr<Row> Measure(const store::MeasureLogLine& line) {
    Row row;
    row.logged_s = LoggedCost(line);
    const auto& workload = workloads_.at(KeyOf(line));
    row.workload = workload.ok() ? workload->description : line.workload_key;
    if (!workload.ok()) return Failed(row, std::string(Message(workload.status())));
    const auto logged = target::ParseTarget(line.target);
    KILN_ASSIGN_OR_RETURN(const auto device, target::ParseTarget(trials_.runner().target()));
    if (!logged.ok()) return Failed(row, std::string(Message(logged.status())));
    if (logged->kind != device.kind) {
      return Failed(row, fmt::format("recorded for {}, this device is {}", logged->kind->name,
                                     device.kind->name));
    }
    DirectTrial trial;
    // A key that was bound to another computation, for one.
    const Status fits = schedule::CheckFit(workload->dag, line.steps_json);
    if (!fits.ok()) return Failed(row, std::string(Message(fits)));
    trial.dag = workload->dag;
    trial.target = target::PrintTarget(device);
    trial.steps = line.steps_json;
    trial.options = flags_.measure;
    trial.build_timeout_ms = flags_.build_timeout_ms;
    KILN_ASSIGN_OR_RETURN(const v1::TrialResult result, trials_.Run(trial));
    if (result.error() != v1::NO_ERROR) {
      return Failed(row,
                    fmt::format("{}: {}", ErrorName(result.error()), FirstLine(result.message())));
    }
    row.here_s = MeanCost(result);
    row.check = result.unchecked().empty()
                    ? fmt::format("right, largest error {:.1e}", result.max_error())
                    : "not checked: " + result.unchecked();
    if (HasUnsaidLayouts(line.layout_rewrite_option.value_or(0), KeyOf(line))) {
      row.check += "; logged with inputs laid out for it, no comparison";
    }
    return row;
  }

 private:
  // Of its computation; where nobody knows that, of the one that takes all inputs as they are.
  std::string KeyOf(const store::MeasureLogLine& line) const {
    const std::string key = ComputationKey(line);
    return workloads_.at(key).ok() ? key : line.workload_key;
  }

  static Row Failed(Row row, std::string why) {
    row.check = std::move(why);
    row.failed = true;
    return row;
  }

  const MeasureLogFlags& flags_;
  const WorkloadsByKey workloads_;
  DirectTrials& trials_;
};

}  // namespace

StatusOr<int> MeasureLogCommand(const MeasureLogFlags& flags, const Session& session) {
  if (!session.scheduler.empty()) {
    return InvalidArgument("records measure uses this machine's device: leave out --scheduler");
  }
  store::MeasureLog log;
  KILN_ASSIGN_OR_RETURN(log.lines, ReadLog(flags.path));
  if (log.lines.empty()) return InvalidArgument("{} has no records", flags.path);
  KILN_ASSIGN_OR_RETURN(WorkloadsByKey bound, BoundWorkloads(flags, session));
  std::string target = flags.target.empty() ? log.lines[0].target : flags.target;
  KILN_ASSIGN_OR_RETURN(const std::string device, DeviceOfTarget(target));
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-measure"));
  LocalCluster::Options options;
  options.db = folder.Join("measure.db");
  options.device = device;
  KILN_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, [] { return false; }));
  KILN_ASSIGN_OR_RETURN(const auto trials, DirectTrials::Connect(*cluster));
  LogMeasurer measurer(flags, WorkloadsOf(log.lines, std::move(bound), session), *trials);
  std::optional<RowPrinter> printer;
  if (!session.json) {
    fmt::print("logged for {}\nhere on {} ({})\n{}\n", ShortTarget(log.lines[0].target),
               trials->runner().device(), ShortTarget(trials->runner().target()),
               OtherTargetText(log.lines, trials->runner()));
    printer.emplace(measurer.Workloads(log.lines));
  }
  size_t failed = 0;
  for (size_t i = 0; i < log.lines.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(const Row row, measurer.Measure(log.lines[i]));
    failed += row.failed;
    if (printer) {
      printer->Print(i + 1, row);
    } else {
      PrintJson(i + 1, row);
    }
  }
  if (printer) fmt::print("\n{} of {} right\n", log.lines.size() - failed, log.lines.size());
  return failed == 0 ? 0 : 1;
}

}  // namespace kiln::client
