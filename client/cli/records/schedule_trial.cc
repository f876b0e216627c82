#include "client/cli/records/schedule_trial.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

#include "base/file/file.h"
#include "client/cli/compilation_target.h"
#include "client/cli/resolve.h"
#include "client/cli/schedule_source.h"
#include "client/direct_trials.h"
#include "client/local_archive.h"
#include "client/this_machine.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "client/view/summary.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/schedule/step.h"
#include "compiler/target/math.h"
#include "compiler/target/target.h"
#include "rpc/device_message.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// The schedule's computation.
struct Computation {
  dag::DagPtr dag;
  // Text with the ranges of the inputs.
  std::string text;
  std::string target;
  // The record with which the schedule is compared.
  std::optional<v1::Record> record;
};

StatusOr<Computation> ComputationOf(const SubjectFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (workload.has_value()) {
    KILN_ASSIGN_OR_RETURN(const std::string target, TargetOrDefault(flags.target, session));
    return Computation{workload->dag, dag::PrintDag(*workload->dag, workload->ranges), target,
                       std::nullopt};
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, *archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags, *archive));
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, DagOfRecord(record, subject, *archive));
  return Computation{dag, record.dag().empty() ? dag::PrintDag(*dag) : record.dag(),
                     flags.target.empty() ? record.target() : flags.target, record};
}

// Returns the record that a job would have made.
v1::Record RecordOf(const Computation& computation, const DirectTrial& trial,
                    const v1::WorkerState& runner, v1::TrialResult result) {
  v1::Record record;
  record.set_workload_id(dag::WorkloadId(*computation.dag));
  record.set_workload_key(dag::WorkloadKey(*computation.dag));
  record.set_dag(trial.dag);
  record.set_target(trial.target);
  *record.mutable_hardware() = runner.hardware();
  const auto model = DeviceModelOf(runner);
  if (model.ok()) record.set_device_model(device::PrintDeviceModel(*model));
  record.set_steps(trial.steps);
  record.set_flop_count(std::max(0.0, computation.dag->flop_count()));
  record.set_origin("a schedule that a person wrote");
  record.set_score(std::numeric_limits<double>::quiet_NaN());
  result.set_device(runner.device());
  result.set_runner(runner.id());
  result.set_timestamp_s(std::time(nullptr));
  *record.mutable_result() = std::move(result);
  return record;
}

void Print(const v1::Record& record, const std::optional<v1::Record>& before) {
  const double cost_s = CostOf(record.result());
  if (before.has_value()) {
    fmt::print("before    {}, trial {}\n", LatencyCell(CostOf(before->result())),
               TrialName(*before));
  }
  if (record.result().error() != v1::NO_ERROR) {
    fmt::print("failed    {}: {}\n", ErrorName(record.result().error()), record.result().message());
  } else {
    fmt::print("now       {}, {}\nchecked   {}\n", LatencyCell(cost_s),
               SpeedCell(record.flop_count(), cost_s), CheckText(record));
  }
  fmt::print("kept as   trial {}, record {}\n", TrialName(record), record.id());
}

}  // namespace

StatusOr<int> TrySchedule(const ScheduleTrial& wanted, const Session& session) {
  if (!session.scheduler.empty()) {
    return InvalidArgument("trial --schedule uses this machine's device: leave out --scheduler");
  }
  KILN_ASSIGN_OR_RETURN(const Computation computation, ComputationOf(wanted.subject, session));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, ReadSchedule(wanted.path, computation.dag));
  LocalCluster::Options options;
  KILN_ASSIGN_OR_RETURN(options.device, DeviceOfTarget(computation.target));
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-schedule"));
  options.db = folder.Join("trial.db");
  KILN_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, [] { return false; }));
  KILN_ASSIGN_OR_RETURN(const auto trials, DirectTrials::Connect(*cluster));
  KILN_ASSIGN_OR_RETURN(const target::Target asked, target::ParseTarget(computation.target));
  KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(trials->runner().target()));
  // The trial runs on this machine; the user chooses how sums are computed.
  if (const std::string math = asked.Option(target::kMath); !math.empty())
    target.options[std::string(target::kMath)] = math;
  DirectTrial trial;
  trial.dag = computation.text;
  trial.target = target::PrintTarget(target);
  trial.steps = schedule::PrintSteps(state.steps());
  trial.options = wanted.measure;
  trial.build_timeout_ms = wanted.build_timeout_ms;
  KILN_ASSIGN_OR_RETURN(v1::TrialResult result, trials->Run(trial));
  const bool failed = result.error() != v1::NO_ERROR;
  KILN_ASSIGN_OR_RETURN(
      v1::Record kept,
      KeepTrial(session.db, RecordOf(computation, trial, trials->runner(), std::move(result))));
  if (session.json) {
    fmt::print("{}\n", JsonOf(kept));
  } else {
    MakePrintable(kept);
    Print(kept, computation.record);
  }
  return failed ? 1 : 0;
}

}  // namespace kiln::client
