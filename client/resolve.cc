#include "client/resolve.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/closest_names.h"
#include "base/file.h"
#include "client/works.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"

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
  std::vector<std::string> names;
  for (const dag::OpInfo& op : dag::AllOps()) names.push_back(op.name);
  return NotFound("'{}' is no job of {}, no operator and no workload key{}", what, archive.Name(),
                  DidYouMean(what, names));
}

// The records of a job, one for each task.
void FastestFormsFirst(const v1::JobStatus& job, std::vector<v1::Record>& records) {
  const auto place = [&](const v1::Record& record) {
    const auto task = static_cast<int>(record.task_index());
    if (task >= job.tasks_size()) return std::pair(task, false);
    const std::vector<int> forms = FormsOf(job, task);
    return std::pair(forms[0], Fastest(job, forms) != task);
  };
  std::stable_sort(records.begin(), records.end(),
                   [&](const v1::Record& a, const v1::Record& b) { return place(a) < place(b); });
}

// A file of that name is meant before a trial is.
std::optional<NamedTrial> TrialOf(const SubjectFlags& flags) {
  if (!flags.words.op.empty() || FileExists(flags.what)) return {};
  return ParseTrialName(flags.what);
}

bool IsBetter(const v1::TrialResult& a, const v1::TrialResult& b) {
  if (a.stopped_early() != b.stopped_early()) return b.stopped_early();
  return CostOf(a) < CostOf(b);
}

// What a record is of: a line of a log may have a key alone.
std::string WorkloadOf(const v1::Record& record) {
  return record.workload_id().empty() ? record.workload_key() : record.workload_id();
}

StatusOr<std::vector<v1::Record>> BestOfWorkloads(const std::string& job_id, Archive& archive) {
  std::map<std::pair<std::string, std::string>, v1::Record> best;
  v1::ListRecordsRequest request;
  request.set_job_id(job_id);
  KILN_RETURN_IF_ERROR(archive.VisitRecords(request, [&](const v1::Record& record) {
    if (CostOf(record.result()) <= 0) return OkStatus();
    const auto [place, is_new] = best.try_emplace({WorkloadOf(record), record.target()}, record);
    if (!is_new && IsBetter(record.result(), place->second.result())) place->second = record;
    return OkStatus();
  }));
  std::vector<v1::Record> records;
  for (auto& [key, record] : best) records.push_back(std::move(record));
  return records;
}

std::string Describe(const Subject& subject) {
  if (!subject.job_id.empty()) return "job " + subject.job_id;
  return "workload " + (subject.workload_key.empty() ? subject.workload_id : subject.workload_key);
}

}  // namespace

StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags) {
  WorkloadWords words = flags.words;
  if (words.op.empty() && !flags.what.starts_with("[") && !TrialOf(flags).has_value() &&
      (IsTextFile(flags.what) || IsNetwork(flags.what) || dag::FindOp(flags.what).ok())) {
    words.op = flags.what;
  }
  if (words.op.empty()) return std::optional<Workload>();
  KILN_ASSIGN_OR_RETURN(Workload workload, LoadWorkload(words));
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
  if (workload.has_value()) {
    subject.workload_id = dag::WorkloadId(*workload->dag);
    subject.workload_key = dag::WorkloadKey(*workload->dag);
    return subject;
  }
  if (flags.what.starts_with("[")) {
    subject.workload_key = flags.what;
    return subject;
  }
  if (IsWorkloadId(flags.what)) {
    subject.workload_id = flags.what;
    return subject;
  }
  if (flags.what.empty()) return NewestJob(archive);
  return JobOrRecord(flags.what, archive);
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
  return NotFound("job {} has no trial {}: its {} trials count from 0", trial.job_id, trial.number,
                  job.trials_done());
}

StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive) {
  if (subject.record.has_value()) return std::vector<v1::Record>{*subject.record};
  v1::BestRequest request;
  request.set_job_id(subject.job_id);
  request.set_workload_id(subject.workload_id);
  request.set_workload_key(subject.workload_key);
  KILN_ASSIGN_OR_RETURN(auto records, archive.Best(request));
  if (records.empty() && !subject.job_id.empty()) {
    KILN_ASSIGN_OR_RETURN(records, BestOfWorkloads(subject.job_id, archive));
  }
  std::erase_if(records, [&](const v1::Record& record) {
    return (!flags.target.empty() && !record.target().starts_with(flags.target)) ||
           (flags.task >= 0 && record.task_index() != static_cast<uint32_t>(flags.task));
  });
  if (!subject.job_id.empty() && !records.empty()) {
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(subject.job_id));
    FastestFormsFirst(job, records);
  }
  if (!records.empty()) return records;
  return NotFound("{} has no successful record{} in {}; tune it first", Describe(subject),
                  flags.target.empty() ? "" : " for target " + flags.target, archive.Name());
}

StatusOr<std::vector<NamedComputation>> ComputationsOfRecords(
    const std::vector<v1::Record>& records, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(0));
  const Names names = NamesOf(jobs);
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
  KILN_ASSIGN_OR_RETURN(const auto computations, ComputationsOfRecords(records, archive));
  return SeveralFit(Describe(subject), computations);
}

StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject,
                                  Archive& archive) {
  if (!record.dag().empty()) return dag::ParseDag(record.dag());
  if (subject.dag != nullptr) {
    if (dag::WorkloadKey(*subject.dag) == record.workload_key()) return subject.dag;
    return InvalidArgument("record {} is of workload {}, and the operator given is {}", record.id(),
                           record.workload_key(), dag::WorkloadKey(*subject.dag));
  }
  KILN_ASSIGN_OR_RETURN(auto computations, ComputationsOf(record.workload_key(), archive));
  if (!record.workload_id().empty()) {
    std::erase_if(computations, [&](const NamedComputation& computation) {
      return computation.id != record.workload_id();
    });
  }
  if (computations.size() == 1) return dag::ParseDag(computations[0].dag);
  if (computations.size() > 1) {
    return SeveralFit(
        fmt::format("record {} came from a log and has a key alone, which", record.id()),
        computations);
  }
  return FailedPrecondition(
      "record {} came from a log and has no DAG: say which operator it is with --op and --args",
      record.id());
}

}  // namespace kiln::client
