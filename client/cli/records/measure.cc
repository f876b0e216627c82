// kiln records measure builds, checks and times the schedules of a measure log, or the best ones of
// a database, on this machine's device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/arrays/packed_key.h"
#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/server/grpc_server.h"
#include "base/text/shell_word.h"
#include "base/text/utf8.h"
#include "client/cli/bindings.h"
#include "client/cli/computations.h"
#include "client/cli/measuring_flags.h"
#include "client/cli/record_filter.h"
#include "client/cli/records/commands.h"
#include "client/cli/session_flags.h"
#include "client/direct_trials.h"
#include "client/local_archive.h"
#include "client/local_cluster.h"
#include "client/log_lines.h"
#include "client/this_machine.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/schedule/fit.h"
#include "compiler/target/meaning.h"
#include "compiler/target/recorded.h"
#include "compiler/target/target.h"
#include "rpc/hardware_message.h"
#include "scheduler/words/format.h"
#include "store/measure_log.h"
#include "store/record.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

struct MeasureFlags {
  // Path of the log; "": the records of the session that match the filter.
  std::string path;
  // Filters the session's records. Its target is the one below.
  RecordFilterFlags filter;
  // "": the target of the first line.
  std::string target;
  // Bindings that are made before (bindings.h).
  std::vector<std::string> bind;
  MeasuringFlags measuring;
};

// Most bytes of the lines of a log. So many lines take days to measure.
constexpr size_t kMaxLogBytes = size_t{256} << 20;
// Number of a database's records if the user gives none.
constexpr uint32_t kDefaultTop = 8;

// A schedule to measure: a line of a log, or a record.
struct Item {
  // Number of the line or the record.
  int64_t number = 0;
  store::MeasureLogLine line;
  // Set for a record that has one.
  std::optional<NamedComputation> computation = {};
};

// The computation for which the key of each line stands, or an error if it is not known.
using WorkloadsByKey = std::map<std::string, StatusOr<NamedComputation>>;

StatusOr<NamedComputation> WorkloadOf(const std::string& key, Archive* archive) {
  std::vector<NamedComputation> computations;
  if (archive != nullptr) {
    KILN_ASSIGN_OR_RETURN(computations, ComputationsOf(key, *archive));
  } else {
    computations = KnownComputationsOf(key);
  }
  if (computations.size() == 1) return computations[0];
  if (computations.size() > 1) return AmbiguousComputation("this key", computations);
  return NotFound(
      "no DAG is known for this key, neither by name nor in the database; --bind says what it "
      "stands "
      "for");
}

NamedComputation ComputationOf(const Binding& binding) {
  return {dag::WorkloadId(*binding.workload.dag), binding.workload.description,
          dag::PrintDag(*binding.workload.dag)};
}

// Binds the keys as the flags say. The database keeps the bindings.
StatusOr<WorkloadsByKey> BoundWorkloads(const MeasureFlags& flags, const Session& session) {
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

// Returns the key of the line's computation (base/arrays/packed_key.h).
std::string ComputationKey(const store::MeasureLogLine& line) {
  return line.layout_rewrite_option == kPreTransformed ? PackedKey(line.workload_key)
                                                       : line.workload_key;
}

// Finds the computations of the items. Tasks of the database are used if there is a database.
WorkloadsByKey WorkloadsOf(const std::vector<Item>& items, WorkloadsByKey bound,
                           const Session& session) {
  const auto archive = session.OpenArchive();
  WorkloadsByKey workloads = std::move(bound);
  for (const Item& item : items) {
    if (item.computation.has_value()) continue;
    for (const std::string& key : {ComputationKey(item.line), item.line.workload_key}) {
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

// Collects items up to a bounded size.
class Items {
 public:
  Status Add(Item item) {
    bytes_ += sizeof(item) + item.line.workload_key.size() + item.line.target.size() +
              item.line.steps_json.size();
    items_.push_back(std::move(item));
    if (bytes_ <= kMaxLogBytes) return OkStatus();
    return ResourceExhausted("there are more than {} MiB up to here; measure them in parts",
                             kMaxLogBytes >> 20);
  }
  std::vector<Item> Take() { return std::move(items_); }

 private:
  std::vector<Item> items_;
  size_t bytes_ = 0;
};

StatusOr<std::vector<Item>> ReadLog(const std::string& path) {
  Items items;
  int64_t number = 0;
  std::string remark;
  KILN_RETURN_IF_ERROR(VisitLog(
      path,
      [&](store::MeasureLogLine line) {
        return items.Add({.number = ++number, .line = std::move(line)});
      },
      &remark));
  if (!remark.empty()) fmt::print(stderr, "kiln: {}: {}\n", path, Printable(remark));
  return items.Take();
}

StatusOr<std::vector<Item>> ReadRecords(const MeasureFlags& flags, const Session& session) {
  const RecordFilterFlags& filter = flags.filter;
  if (filter.job.empty() && filter.workload.empty() && filter.arguments.op.empty()) {
    return InvalidArgument(
        "say what is to be measured: a log, or of which job, workload or operator the best "
        "records");
  }
  KILN_ASSIGN_OR_RETURN(auto request, RequestOf(filter, absl::ToUnixSeconds(absl::Now())));
  request.set_target(flags.target);
  if (!filter.top.has_value()) request.set_top(kDefaultTop);
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  const Names names = NamesOf(jobs);
  Items items;
  KILN_RETURN_IF_ERROR(archive->VisitRecords(request, [&](const v1::Record& record) -> Status {
    KILN_ASSIGN_OR_RETURN(store::MeasureLogLine line, store::LineOfRecord(store::RecordOf(record)));
    line.costs_s = {CostOf(record.result())};
    Item item{.number = record.id(), .line = std::move(line)};
    if (!record.dag().empty()) {
      item.computation =
          NamedComputation{record.workload_id(), NameOf(record, names), record.dag()};
    }
    return items.Add(std::move(item));
  }));
  return items.Take();
}

// Returns a warning if times of the log cannot be compared with those of this machine; otherwise
// "".
std::string OtherTargetText(const std::vector<Item>& items, const v1::WorkerState& here) {
  const auto others = std::ranges::count_if(items, [&](const Item& item) {
    const store::MeasureLogLine& line = item.line;
    return !target::MeanSame(line.target, HardwareParamsOf(line.hardware.value_or(HardwareRow{})),
                             here.target(), HardwareParamsOf(here.hardware()));
  });
  if (others == 0) return "";
  return fmt::format("{} of {} are for another target: what was measured there is no comparison\n",
                     others, items.size());
}

struct Row {
  std::string workload;
  double logged_s = 0, here_s = 0;
  // "right, error 1e-6", "wrong answer: ...", "skipped: ...".
  std::string check;
  bool failed = false;
  // False: nobody knows what the record computes, or it is of another kind of device.
  bool checked = true;
};

// Prints rows as they come, in columns, so that a long log shows results from the beginning.
class RowPrinter {
 public:
  RowPrinter(const std::vector<std::string>& workloads, std::string_view number)
      : columns_(OutputColumns(STDOUT_FILENO)) {
    for (const std::string& workload : workloads) {
      width_ = std::max(width_, DisplayWidth(workload));
    }
    if (columns_ > 0) width_ = std::clamp(columns_ - kOthers - kCheck, kMin, width_);
    Print(number, "Workload", "Logged us", "Here us", "Check");
    fmt::print("{}\n", Fitting(std::string(static_cast<size_t>(width_ + kOthers + 5), '-')));
  }

  void Print(int64_t number, const Row& row) const {
    Print(std::to_string(number), row.workload, MicrosecondsText(row.logged_s),
          MicrosecondsText(row.here_s), row.check);
  }

 private:
  // Columns before the check, except for the workload.
  static constexpr int kOthers = 6 + 9 + 9 + 4 * 2;
  // Columns that a narrow terminal leaves for the check.
  static constexpr int kCheck = 20;
  // Columns that a narrow terminal leaves for the workload.
  static constexpr int kMin = 8;

  static std::string MicrosecondsText(double cost_s) {
    return cost_s > 0 ? fmt::format("{:.2f}", 1e6 * cost_s) : std::string("-");
  }
  std::string Fitting(const std::string& line) const {
    return columns_ > 0 ? Elide(line, columns_) : line;
  }
  void Print(std::string_view number, std::string_view workload, std::string_view logged,
             std::string_view here, std::string_view check) const {
    fmt::print("{}\n", Fitting(fmt::format("{:>6}  {:<{}}  {:>9}  {:>9}  {}", number,
                                           Elide(workload, width_), width_, logged, here, check)));
    std::fflush(stdout);
  }

  // 0: any number.
  const int columns_;
  int width_ = kMin;
};

void PrintJson(std::string_view numbered, int64_t number, const Row& row) {
  fmt::print(
      "{{\"{}\":{},\"workload\":{},\"logged_cost_s\":{},\"cost_s\":{},\"ok\":{},"
      "\"checked\":{},\"check\":{}}}\n",
      numbered, number, JsonString(row.workload),
      row.logged_s > 0 ? fmt::format("{}", row.logged_s) : "null",
      row.here_s > 0 ? fmt::format("{}", row.here_s) : "null", !row.failed, row.checked,
      JsonString(row.check));
  std::fflush(stdout);
}

class LogMeasurer {
 public:
  LogMeasurer(const MeasureFlags& flags, WorkloadsByKey workloads, DirectTrials& trials)
      : flags_(flags), workloads_(std::move(workloads)), trials_(trials) {}

  // Returns the names of the workloads, as the rows have them.
  std::vector<std::string> Workloads(const std::vector<Item>& items) const {
    std::vector<std::string> workloads;
    for (const Item& item : items) {
      const StatusOr<NamedComputation> workload = WorkloadOf(item);
      workloads.push_back(workload.ok() ? workload->description : item.line.workload_key);
    }
    return workloads;
  }

  StatusOr<Row> Measure(const Item& item) {
    const store::MeasureLogLine& line = item.line;
    Row row;
    row.logged_s = LoggedCost(line);
    const StatusOr<NamedComputation> workload = WorkloadOf(item);
    row.workload = workload.ok() ? workload->description : line.workload_key;
    if (!workload.ok()) return NotChecked(row, std::string(Message(workload.status())));
    const auto logged = target::ParseRecordedTarget(line.target);
    KILN_ASSIGN_OR_RETURN(const auto device, target::ParseTarget(trials_.runner().target()));
    if (!logged.ok()) return NotChecked(row, std::string(Message(logged.status())));
    if (logged->target.kind != device.kind) {
      return NotChecked(row, fmt::format("recorded for {}, this device is {}",
                                         logged->target.kind->name, device.kind->name));
    }
    DirectTrial trial;
    // The key may have been bound to another computation, for instance.
    const Status fits = schedule::CheckFit(workload->dag, line.steps_json);
    if (!fits.ok()) return Failed(row, std::string(Message(fits)));
    trial.dag = workload->dag;
    trial.target = target::PrintTarget(device);
    trial.steps = line.steps_json;
    v1::TuneOptions options;
    flags_.measuring.Set(/*may_idle=*/false, options);
    trial.options = options.measure();
    trial.build_timeout_ms = options.build_timeout_ms();
    KILN_ASSIGN_OR_RETURN(const v1::TrialResult result, trials_.Run(trial));
    if (result.error() != v1::NO_ERROR) {
      return Failed(row,
                    fmt::format("{}: {}", ErrorName(result.error()), FirstLine(result.message())));
    }
    row.here_s = MeanCost(result);
    row.check = result.unchecked().empty()
                    ? fmt::format("right, largest error {:.1e}", result.max_error())
                    : "not checked: " + result.unchecked();
    const bool unsaid = !item.computation.has_value() &&
                        HasUnsaidLayouts(line.layout_rewrite_option.value_or(0), KeyOf(line));
    if (unsaid) {
      row.check += "; logged with inputs laid out for it, no comparison";
    }
    return row;
  }

 private:
  StatusOr<NamedComputation> WorkloadOf(const Item& item) const {
    if (item.computation.has_value()) return *item.computation;
    return workloads_.at(KeyOf(item.line));
  }

  // Returns the key of the line's computation. If nobody knows that key, it is the key of the
  // computation that takes all inputs unpacked.
  std::string KeyOf(const store::MeasureLogLine& line) const {
    const std::string key = ComputationKey(line);
    return workloads_.at(key).ok() ? key : line.workload_key;
  }

  static Row Failed(Row row, std::string why) {
    row.check = std::move(why);
    row.failed = true;
    return row;
  }

  static Row NotChecked(Row row, std::string why) {
    row.checked = false;
    return Failed(std::move(row), std::move(why));
  }

  const MeasureFlags& flags_;
  const WorkloadsByKey workloads_;
  DirectTrials& trials_;
};

// Measures each record with the timings that the user asked for, and no more. Returns the exit
// status: 1 if a record was not right.
StatusOr<int> Measure(const MeasureFlags& flags, const Session& session) {
  InitGrpc();
  const bool of_log = !flags.path.empty();
  if (of_log && !session.scheduler.empty()) {
    return InvalidArgument("a log is measured on this machine's device: leave out --scheduler");
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<Item> items,
                        of_log ? ReadLog(flags.path) : ReadRecords(flags, session));
  if (items.empty()) {
    return of_log ? InvalidArgument("{} has no records", flags.path)
                  : NotFound("there is no such record without an error");
  }
  KILN_ASSIGN_OR_RETURN(WorkloadsByKey bound, BoundWorkloads(flags, session));
  const std::string& first_target = items[0].line.target;
  const auto first = target::ParseRecordedTarget(first_target);
  KILN_ASSIGN_OR_RETURN(const std::string device,
                        DeviceOfTarget(!flags.target.empty() ? flags.target
                                       : first.ok()          ? target::PrintTarget(first->target)
                                                             : first_target));
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-measure"));
  LocalCluster::Options options;
  options.db = folder.Join("measure.db");
  options.device = device;
  KILN_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, [] { return false; }));
  KILN_ASSIGN_OR_RETURN(const auto trials, DirectTrials::Connect(*cluster));
  LogMeasurer measurer(flags, WorkloadsOf(items, std::move(bound), session), *trials);
  std::optional<RowPrinter> printer;
  if (!session.json) {
    fmt::print("logged for {}\nhere on {} ({})\n{}\n", ShortTarget(first_target),
               trials->runner().device(), ShortTarget(trials->runner().target()),
               OtherTargetText(items, trials->runner()));
    printer.emplace(measurer.Workloads(items), of_log ? "Line" : "Record");
  }
  size_t failed = 0;
  for (const Item& item : items) {
    KILN_ASSIGN_OR_RETURN(const Row row, measurer.Measure(item));
    failed += row.failed;
    if (printer) {
      printer->Print(item.number, row);
    } else {
      PrintJson(of_log ? "line" : "record", item.number, row);
    }
  }
  if (printer) fmt::print("\n{} of {} right\n", items.size() - failed, items.size());
  return failed == 0 ? 0 : 1;
}

}  // namespace

Run AddRecordsMeasure(CLI::App& measure, SessionFlags& session) {
  const auto flags = std::make_shared<MeasureFlags>();
  measure.description(
      "build, check and time the records of a log, or the best ones of the "
      "database, on this machine again");
  measure.add_option("file", flags->path,
                     "the log [the best records of --op, --workload or --job]");
  measure.add_option("--target", flags->target, "llvm or cuda: the device [as the first record]");
  AddRecordSelection(measure, flags->filter);
  AddTop(measure, flags->filter);
  AddBindings(measure, flags->bind);
  flags->measuring.AddTo(measure);
  session.AddPlace(measure);
  return [flags](const Session& session) { return Measure(*flags, session); };
}

}  // namespace kiln::client
