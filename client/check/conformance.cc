#include "client/check/conformance.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "client/check/large_workloads.h"
#include "client/client.h"
#include "client/local_archive.h"
#include "client/local_cluster.h"
#include "client/this_machine.h"
#include "client/view/json.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/dag/text.h"
#include "compiler/ir/hints.h"
#include "compiler/target/math.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Counts of one workload.
struct Tally {
  std::string workload, job_id;
  uint32_t candidates = 0, right = 0, by_matrix_units = 0;
  // Failures by their kind.
  uint32_t refused = 0, wrong = 0, crashed = 0, timed_out = 0, not_built = 0, lost = 0;
  std::optional<double> best_s;
  std::vector<v1::Record> failures;
  // Why the job did not end well.
  std::string problem;

  uint32_t failed() const { return candidates - right; }
};

// Returns whether the device refused a candidate that passed the checks.
bool IsRefusal(const v1::TrialResult& result) {
  return result.error() == v1::COMPILE_DEVICE_ERROR ||
         (result.error() == v1::RUNTIME_DEVICE_ERROR &&
          result.message().find("launch kernel") != std::string::npos);
}

void Count(const v1::Record& record, Tally& tally) {
  const v1::TrialResult& result = record.result();
  ++tally.candidates;
  const std::string_view hint = ir::RowOf(ir::Hint::kMatrixUnit).pragma;
  if (record.steps().find(hint) != std::string::npos) ++tally.by_matrix_units;
  if (result.error() == v1::NO_ERROR) {
    ++tally.right;
    const double cost_s = MeanCost(result);
    if (!result.stopped_early() && (!tally.best_s.has_value() || cost_s < *tally.best_s)) {
      tally.best_s = cost_s;
    }
    return;
  }
  tally.failures.push_back(record);
  if (IsRefusal(result)) {
    ++tally.refused;
    return;
  }
  switch (result.error()) {
    case v1::WRONG_ANSWER_ERROR:
      ++tally.wrong;
      break;
    case v1::RUNTIME_DEVICE_ERROR:
      ++tally.crashed;
      break;
    case v1::RUN_TIMEOUT_ERROR:
      ++tally.timed_out;
      break;
    case v1::INSTANTIATION_ERROR:
    case v1::COMPILE_HOST_ERROR:
    case v1::BUILD_TIMEOUT_ERROR:
      ++tally.not_built;
      break;
    default:
      ++tally.lost;
  }
}

v1::JobSpec JobOf(const NamedComputation& workload, const std::string& target,
                  const v1::TuneOptions& options) {
  v1::JobSpec spec;
  spec.set_name("conformance " + workload.name);
  spec.set_user("conformance");
  v1::TaskSpec& task = *spec.add_tasks();
  task.set_dag(dag::PrintDag(*workload.dag));
  task.set_target(target);
  task.set_description(workload.name);
  *spec.mutable_options() = options;
  return spec;
}

// Calls `on_candidate` with the counts so far after each candidate.
StatusOr<Tally> RunWorkload(const NamedComputation& workload, SchedulerClient& client,
                            const std::string& target, const v1::TuneOptions& options,
                            const std::function<void(const Tally&)>& on_candidate) {
  Tally tally;
  tally.workload = workload.name;
  v1::JobSpec spec = JobOf(workload, target, options);
  KILN_RETURN_IF_ERROR(NameThisCpu(spec));
  KILN_ASSIGN_OR_RETURN(tally.job_id, client.Submit(spec));
  const std::stop_source stop;
  KILN_RETURN_IF_ERROR(client.Watch(
      tally.job_id,
      [&](const v1::JobEvent& event) {
        if (event.has_record()) {
          Count(event.record(), tally);
          on_candidate(tally);
        }
        if (!IsFinal(event.status().state()) || event.status().state() == v1::SUCCEEDED) return;
        tally.problem =
            fmt::format("{}: {}", JobStateName(event.status().state()), event.status().message());
      },
      stop.get_token()));
  return tally;
}

void PrintJson(const Tally& tally) {
  fmt::print(
      "{{\"workload\":{},\"job\":{},\"candidates\":{},\"right\":{},\"refused\":{},\"wrong\":{},"
      "\"crashed\":{},\"timed_out\":{},\"not_built\":{},\"lost\":{},\"matrix_units\":{},"
      "\"best_cost_s\":{},"
      "\"problem\":{}}}\n",
      JsonString(tally.workload), JsonString(tally.job_id), tally.candidates, tally.right,
      tally.refused, tally.wrong, tally.crashed, tally.timed_out, tally.not_built, tally.lost,
      tally.by_matrix_units, tally.best_s.has_value() ? fmt::format("{}", *tally.best_s) : "null",
      JsonString(tally.problem));
  std::fflush(stdout);
}

void PrintFailures(const Tally& tally, const Session& session) {
  if (!tally.problem.empty()) fmt::print("\n{}: job {}\n", tally.workload, tally.problem);
  if (tally.failures.empty()) return;
  fmt::print("\n{}\n", tally.workload);
  for (const v1::Record& record : tally.failures) {
    const v1::TrialResult& result = record.result();
    const std::string line =
        fmt::format("  {}: {}", ErrorName(result.error()), FirstLine(result.message()));
    const int columns = OutputColumns(STDOUT_FILENO);
    fmt::print("{}\n    {}\n", columns > 0 ? Elide(line, columns) : line,
               session.Command("trial " + TrialName(record)));
  }
}

constexpr std::string_view kMatrixUnits = "matrix-units";
constexpr std::string_view kLarge = "large";
constexpr char kMatrixUnitProb[] = "matrix_unit_prob";
// Time for a program over 2^31 elements, including filling and fetching them.
constexpr uint32_t kLargeTimeoutMs = 300'000;
// Calls per reading. The time goes into filling and fetching the elements, and nobody asks how fast
// the calls are.
constexpr uint32_t kLargeCalls = 1;

StatusOr<std::vector<dag::KnownWorkload>> KnownWorkloadsOf(const ConformanceFlags& flags) {
  const std::span<const dag::KnownWorkload> usual = dag::ConformanceWorkloads();
  if (flags.set != kMatrixUnits) return std::vector(usual.begin(), usual.end());
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(flags.target));
  if (target::AllowsTf32(target)) return dag::MatrixWorkloads("float32");
  std::vector<dag::KnownWorkload> all;
  for (const char* dtype : {"float16", "bfloat16", "int8", "float8_e4m3fn", "float8_e5m2"})
    std::ranges::copy(dag::MatrixWorkloads(dtype), std::back_inserter(all));
  return all;
}

StatusOr<std::vector<NamedComputation>> WorkloadsOf(const ConformanceFlags& flags) {
  if (flags.set == kLarge) return LargeWorkloads();
  KILN_ASSIGN_OR_RETURN(const std::vector<dag::KnownWorkload> known, KnownWorkloadsOf(flags));
  std::vector<NamedComputation> all;
  for (const dag::KnownWorkload& workload : known) {
    KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, workload.Build());
    all.push_back({workload.Description(), std::move(dag)});
  }
  return all;
}

// Prints a line for each candidate, for sets whose candidates are few and take seconds.
class Progress {
 public:
  explicit Progress(bool is_shown) : is_shown_(is_shown) {}

  void Begin(const std::string& workload) {
    begin_s_ = Clock::Real().MonotonicSeconds();
    Print(fmt::format("{} ...", workload));
  }
  void Candidate(const Tally& tally) {
    Print(fmt::format("  {}: {} right, {:.1f} s", Counted(tally.candidates, "candidate"),
                      tally.right, Clock::Real().MonotonicSeconds() - begin_s_));
  }

 private:
  void Print(const std::string& line) const {
    if (!is_shown_) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  const bool is_shown_;
  double begin_s_ = 0;
};

v1::TuneOptions OptionsOf(const ConformanceFlags& flags) {
  v1::TuneOptions tune = flags.options;
  if (flags.set == kMatrixUnits && !tune.policy_parameters().contains(kMatrixUnitProb))
    (*tune.mutable_policy_parameters())[kMatrixUnitProb] = 1;
  if (flags.set == kLarge) {
    v1::MeasureOptions& measure = *tune.mutable_measure();
    if (measure.timeout_ms() == 0) measure.set_timeout_ms(kLargeTimeoutMs);
    if (measure.number() == 0) measure.set_number(kLargeCalls);
  }
  return tune;
}

}  // namespace

StatusOr<int> ConformanceCommand(const ConformanceFlags& flags, const Session& session) {
  if (!session.scheduler.empty()) {
    return InvalidArgument("conformance tests this machine's device: leave out --scheduler");
  }
  KILN_ASSIGN_OR_RETURN(const std::string device, DeviceOfTarget(flags.target));
  KILN_RETURN_IF_ERROR(CheckDatabase(session.db));
  LocalCluster::Options options;
  options.db = session.db;
  options.device = device;
  options.log_folder = flags.log_folder;
  options.allow_faults = !flags.options.faults().empty();
  KILN_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, [] { return false; }));
  KILN_ASSIGN_OR_RETURN(const auto client,
                        SchedulerClient::Connect(cluster->scheduler_address(), cluster->secret()));
  std::vector<Tally> tallies;
  Tally all;
  KILN_ASSIGN_OR_RETURN(const std::vector<NamedComputation> workloads, WorkloadsOf(flags));
  const v1::TuneOptions tune = OptionsOf(flags);
  Progress progress(flags.set == kLarge && !session.json);
  for (const NamedComputation& workload : workloads) {
    if (workload.name.find(flags.only) == std::string::npos) continue;
    progress.Begin(workload.name);
    KILN_ASSIGN_OR_RETURN(Tally tally, RunWorkload(workload, *client, flags.target, tune,
                                                   [&](const Tally& t) { progress.Candidate(t); }));
    if (session.json) {
      PrintJson(tally);
    } else {
      fmt::print("{}: {} of {} right, best {}\n", tally.workload, tally.right, tally.candidates,
                 LatencyCell(tally.best_s.value_or(0)));
      std::fflush(stdout);
    }
    for (uint32_t Tally::* count :
         {&Tally::candidates, &Tally::right, &Tally::by_matrix_units, &Tally::refused,
          &Tally::wrong, &Tally::crashed, &Tally::timed_out, &Tally::not_built, &Tally::lost}) {
      all.*count += tally.*count;
    }
    if (!tally.problem.empty()) all.problem = tally.problem;
    tallies.push_back(std::move(tally));
  }
  if (tallies.empty()) return NotFound("no workload of the conformance run has '{}'", flags.only);
  const bool good = all.failed() == 0 && all.problem.empty();
  if (session.json) return good ? 0 : 1;
  Table table({{"Workload", Table::kLeft, 8},
               {"Candidates", Table::kRight},
               {"Matrix units", Table::kRight},
               {"Refused", Table::kRight},
               {"Wrong", Table::kRight},
               {"Crashed", Table::kRight},
               {"Run timeout", Table::kRight},
               {"Not built", Table::kRight},
               {"Best us", Table::kRight}});
  all.workload = "all";
  tallies.push_back(all);
  for (const Tally& t : tallies) {
    table.AddRow({t.workload, FormatCount(t.candidates), FormatCount(t.by_matrix_units),
                  fmt::format("{}", t.refused), fmt::format("{}", t.wrong),
                  fmt::format("{}", t.crashed), fmt::format("{}", t.timed_out),
                  fmt::format("{}", t.not_built),
                  t.best_s.has_value() ? fmt::format("{:.2f}", 1e6 * *t.best_s) : "-"});
  }
  fmt::print("\n{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  tallies.pop_back();
  for (const Tally& tally : tallies) PrintFailures(tally, session);
  return good ? 0 : 1;
}

}  // namespace kiln::client
