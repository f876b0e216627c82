#include "client/cli/resolve.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/file/file.h"
#include "base/text/counted.h"
#include "client/jobs/kernel_source.h"
#include "client/jobs/operator_name.h"
#include "client/network.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/computation.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/fit.h"
#include "compiler/target/meaning.h"
#include "device/measured_as.h"
#include "rpc/hardware_message.h"
#include "scheduler/words/variant_groups.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return {};
  return value;
}

StatusOr<Subject> NewestJob(Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(20));
  for (const v1::JobStatus& job : jobs) {
    Subject subject;
    subject.job_id = job.id();
    if (!job.tasks().empty()) return subject;
  }
  return NotFound("there is no job in {}; name a workload, a record or an operator",
                  archive.Name());
}

StatusOr<Subject> JobOrRecord(const std::string& what, Archive& archive) {
  Subject subject;
  const auto job = archive.Job(what);
  if (job.ok()) {
    subject.job_id = what;
    return subject;
  }
  if (job.status().code() != StatusCode::kNotFound) return job.status();
  if (const auto id = Number(what)) {
    KILN_ASSIGN_OR_RETURN(subject.record, archive.GetRecord(*id));
    return subject;
  }
  return NotFound("'{}' is no job of {}, no operator and no workload key{}", what, archive.Name(),
                  DidYouMeanOperator(what));
}

// Sorts the records of a job, one for each task.
void FastestVariantsFirst(const v1::JobStatus& job, std::vector<v1::Record>& records) {
  const auto place = [&](const v1::Record& record) {
    const auto task = static_cast<int>(record.task_index());
    if (task >= job.tasks_size()) return std::pair(task, false);
    const std::vector<int> variants = VariantsOf(job, task);
    return std::pair(variants[0], Fastest(job, variants) != task);
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const v1::Record& a, const v1::Record& b) { return place(a) < place(b); });
}

// A file with the name of a trial goes before the trial.
std::optional<NamedTrial> TrialOf(const SubjectFlags& flags) {
  if (FileExists(flags.what)) return {};
  return ParseTrialName(flags.what);
}

bool IsBetter(const v1::Record& a, const v1::Record& b) {
  return store::RankOf(a) < store::RankOf(b);
}

// Names the record's computation: a line of a log may have only a key.
std::string WorkloadOf(const v1::Record& record) {
  return record.workload_id().empty() ? record.workload_key() : record.workload_id();
}

StatusOr<std::vector<v1::Record>> BestOfWorkloads(const std::string& job_id,
                                                  const std::string& as_deployed,
                                                  Archive& archive) {
  std::map<std::pair<std::string, std::string>, v1::Record> best;
  v1::ListRecordsRequest request;
  request.set_job_id(job_id);
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    const bool is_asked = device::IsAsDeployed(record.result().measured_as(), as_deployed);
    if (CostOf(record.result()) <= 0 || !is_asked) return OkStatus();
    const auto [place, is_new] = best.try_emplace({WorkloadOf(record), record.target()}, record);
    if (!is_new && IsBetter(record, place->second)) place->second = record;
    return OkStatus();
  }));
  std::vector<v1::Record> records;
  for (auto& [key, record] : best) records.push_back(std::move(record));
  return records;
}

Status CheckIsOf(const v1::Record& record, std::string_view dag, std::string_view what) {
  // The computation has the kernel's digest.
  if (handwritten::IsKernelPoint(record.steps())) return OkStatus();
  const Status fits = schedule::CheckFit(dag, record.steps());
  if (fits.ok()) return fits;
  return InvalidArgument("record {} of {} is no schedule of {}: {}", record.id(),
                         record.workload_key(), what, Message(fits));
}

// Returns whether the record is for the target: a prefix of its text, or a target that means the
// same; "" means any target.
bool IsFor(const std::string& target, const v1::Record& record) {
  return record.target().starts_with(target) ||
         target::MeanSame(record.target(), HardwareParamsOf(record.hardware()), target, {});
}

bool MeanSameTarget(const v1::Record& a, const v1::Record& b) {
  return target::MeanSame(a.target(), HardwareParamsOf(a.hardware()), b.target(),
                          HardwareParamsOf(b.hardware()));
}

// Returns whether both records have the same computation, and targets that mean the same.
bool Alike(const v1::Record& a, const v1::Record& b) {
  return WorkloadOf(a) == WorkloadOf(b) && a.result().measured_as() == b.result().measured_as() &&
         MeanSameTarget(a, b);
}

// Returns whether the record's target leaves so much open that it means the same as two targets
// that differ from each other.
bool IsAmbiguous(const v1::Record& record, const std::vector<v1::Record>& all) {
  for (const v1::Record& a : all) {
    for (const v1::Record& b : all) {
      if (Alike(record, a) && Alike(record, b) && !Alike(a, b)) return true;
    }
  }
  return false;
}

// Returns the best of the records that are alike, in their order. An ambiguous record stays apart.
std::vector<v1::Record> BestOfEachGroup(const std::vector<v1::Record>& records) {
  std::vector<v1::Record> best, apart;
  for (const v1::Record& record : records) {
    if (IsAmbiguous(record, records)) {
      apart.push_back(record);
      continue;
    }
    const auto same = std::find_if(best.begin(), best.end(),
                                   [&](const v1::Record& other) { return Alike(other, record); });
    if (same == best.end()) {
      best.push_back(record);
    } else if (IsBetter(record, *same)) {
      *same = record;
    }
  }
  best.insert(best.end(), apart.begin(), apart.end());
  return best;
}

std::string Describe(const Subject& subject) {
  if (!subject.job_id.empty()) return "job " + subject.job_id;
  return "workload " +
         (subject.workload_keys.empty() ? subject.workload_id : subject.workload_keys[0]);
}

// Returns the computation of a kernel, as the kernel's jobs have it.
StatusOr<std::optional<Workload>> KernelWorkload(const SubjectFlags& flags) {
  if (flags.kernel_space.empty()) {
    return InvalidArgument(
        "{} is a kernel, which has parameters and no schedule: kiln best and kiln show take it "
        "with --space FILE.toml (docs/howto/tune-a-kernel.md)",
        flags.what);
  }
  KILN_ASSIGN_OR_RETURN(KernelSource kernel, LoadKernelSource(flags.what, flags.kernel_space));
  KILN_ASSIGN_OR_RETURN(kernel.workload.dag,
                        handwritten::TaggedComputation(kernel.text, kernel.workload.dag));
  return std::optional<Workload>(std::move(kernel.workload));
}

// Replaces each record of a kernel's computation by that of the kernel's best configuration for the
// same target. Otherwise the record might be that of the loops, with which the kernel is compared.
StatusOr<std::vector<v1::Record>> BestConfigurations(const std::vector<v1::Record>& records,
                                                     Archive& archive) {
  std::vector<v1::Record> configurations;
  for (const v1::Record& record : records) {
    std::optional<v1::Record> best;
    v1::ListRecordsRequest request;
    request.set_workload_id(record.workload_id());
    request.set_target(record.target());
    KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& other) {
      const bool is_one =
          handwritten::IsKernelPoint(other.steps()) && other.target() == record.target();
      if (is_one && (!best.has_value() || IsBetter(other, *best))) best = other;
      return OkStatus();
    }));
    if (best.has_value()) configurations.push_back(*std::move(best));
  }
  return configurations;
}

// Checks that a job has the task.
Status CheckTask(const std::string& job_id, int task, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(job_id));
  if (task < job.tasks_size()) return OkStatus();
  return NotFound("job {} has no task {}: it has {}, counted from 0", job_id, task,
                  Counted(job.tasks_size(), "task"));
}

}  // namespace

StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags) {
  if (flags.arguments.op.empty() && handwritten::IsKernelFile(flags.what))
    return KernelWorkload(flags);
  WorkloadArguments arguments = flags.arguments;
  if (arguments.op.empty() && !flags.what.starts_with("[") && !TrialOf(flags).has_value() &&
      (IsTextFile(flags.what) || IsNetwork(flags.what) || IsForeignNetwork(flags.what) ||
       dag::FindOp(flags.what).ok())) {
    arguments.op = flags.what;
  }
  if (!flags.kernel_space.empty()) {
    return InvalidArgument(
        "--space is of a kernel of yours: expected its source, *.cu or *.c, found '{}'",
        flags.what);
  }
  if (arguments.op.empty()) return std::optional<Workload>();
  KILN_ASSIGN_OR_RETURN(Workload workload, LoadWorkload(arguments));
  return std::optional<Workload>(std::move(workload));
}

StatusOr<Subject> Resolve(const SubjectFlags& flags, Archive& archive) {
  Subject subject;
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (workload.has_value()) subject.dag = workload->dag;
  if (flags.record > 0) {
    KILN_ASSIGN_OR_RETURN(subject.record, archive.GetRecord(flags.record));
    return subject;
  }
  if (const auto trial = TrialOf(flags)) {
    KILN_ASSIGN_OR_RETURN(subject.record, FindTrial(*trial, archive));
    return subject;
  }
  const bool says_what_it_is = !flags.arguments.op.empty() && !flags.what.empty();
  if (workload.has_value() && !says_what_it_is) {
    subject.workload_id = dag::WorkloadId(*workload->dag);
    subject.workload_keys = dag::WorkloadKeys(*workload->dag);
    return subject;
  }
  if (flags.what.starts_with("[")) {
    subject.workload_keys = {dag::NormalizedKey(flags.what)};
    return subject;
  }
  if (IsWorkloadId(flags.what)) {
    subject.workload_id = flags.what;
    return subject;
  }
  if (flags.what.empty()) return NewestJob(archive);
  KILN_ASSIGN_OR_RETURN(Subject found, JobOrRecord(flags.what, archive));
  found.dag = subject.dag;
  return found;
}

StatusOr<v1::Record> FindTrial(const NamedTrial& trial, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(trial.job_id));
  v1::ListRecordsRequest request;
  request.set_job_id(trial.job_id);
  request.set_include_errors(true);
  std::optional<v1::Record> found;
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    if (record.trial() == trial.number) found = record;
    return OkStatus();
  }));
  if (found.has_value()) return *std::move(found);
  return NotFound("job {} has no trial {}: it has {}, counted from 0", trial.job_id, trial.number,
                  Counted(job.trials_done(), "trial"));
}

StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive) {
  if (subject.record.has_value()) return std::vector<v1::Record>{*subject.record};
  if (!subject.job_id.empty() && flags.task.has_value())
    KILN_RETURN_IF_ERROR(CheckTask(subject.job_id, *flags.task, archive));
  v1::BestRequest request;
  request.set_job_id(subject.job_id);
  request.set_workload_id(subject.workload_id);
  request.set_as_deployed(flags.as_deployed);
  request.mutable_workload_keys()->Add(subject.workload_keys.begin(), subject.workload_keys.end());
  KILN_ASSIGN_OR_RETURN(auto records, archive.Best(request));
  if (records.empty() && !subject.job_id.empty()) {
    KILN_ASSIGN_OR_RETURN(records, BestOfWorkloads(subject.job_id, flags.as_deployed, archive));
  }
  std::erase_if(records, [&](const v1::Record& record) {
    return !IsFor(flags.target, record) ||
           (flags.task.has_value() && record.task_index() != static_cast<uint32_t>(*flags.task));
  });
  if (subject.is_workload()) records = BestOfEachGroup(records);
  if (handwritten::IsKernelFile(flags.what)) {
    KILN_ASSIGN_OR_RETURN(records, BestConfigurations(records, archive));
  }
  if (!subject.job_id.empty() && !records.empty()) {
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(subject.job_id));
    FastestVariantsFirst(job, records);
  }
  if (!records.empty()) return records;
  return NotFound("{} has no successful record{}{} in {}; tune it first", Describe(subject),
                  flags.target.empty() ? "" : " for target " + flags.target,
                  flags.as_deployed.empty() ? "" : " that was measured as " + flags.as_deployed,
                  archive.Name());
}

std::vector<NamedComputation> ComputationsOfRecords(const std::vector<v1::Record>& records,
                                                    const Names& names) {
  std::vector<NamedComputation> computations;
  for (const v1::Record& record : records) {
    const bool there = std::any_of(
        computations.begin(), computations.end(),
        [&](const NamedComputation& other) { return other.id == record.workload_id(); });
    if (!there) computations.push_back({record.workload_id(), NameOf(record, names), record.dag()});
  }
  return computations;
}

StatusOr<v1::Record> OneBestOf(const Subject& subject, const SubjectFlags& flags,
                               Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto records, BestOf(subject, flags, archive));
  const bool one = std::all_of(records.begin(), records.end(), [&](const v1::Record& record) {
    return record.workload_id() == records[0].workload_id();
  });
  if (one || !subject.is_workload()) return records[0];
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.JobsWithoutResults());
  const std::vector<NamedComputation> computations = ComputationsOfRecords(records, NamesOf(jobs));
  return AmbiguousComputation(Describe(subject), computations);
}

StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject,
                                  Archive& archive) {
  if (!record.dag().empty()) return dag::ParseDag(record.dag());
  if (subject.dag != nullptr) {
    KILN_RETURN_IF_ERROR(CheckIsOf(record, dag::PrintDag(*subject.dag), "the operator given"));
    return subject.dag;
  }
  KILN_ASSIGN_OR_RETURN(auto computations, ComputationsOf(record.workload_key(), archive));
  if (!record.workload_id().empty()) {
    std::erase_if(computations, [&](const NamedComputation& computation) {
      return computation.id != record.workload_id();
    });
  }
  if (computations.size() == 1) {
    KILN_RETURN_IF_ERROR(CheckIsOf(record, computations[0].dag, computations[0].description));
    return dag::ParseDag(computations[0].dag);
  }
  if (computations.size() > 1) {
    return AmbiguousComputation(
        fmt::format("record {} came from a log and has a key alone, which", record.id()),
        computations);
  }
  return FailedPrecondition(
      "record {} came from a log, and what its key {} stands for is not known: say which operator "
      "it is with --op and --args, or for all records of the key with `kiln records bind`",
      record.id(), record.workload_key());
}

}  // namespace kiln::client
