#include "client/resolve.h"

#include <algorithm>
#include <charconv>

#include "client/known_workloads.h"
#include "client/works.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
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
  return NotFound("'{}' is no job of {}, no operator and no workload key", what, archive.Name());
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

std::string Describe(const Subject& subject) {
  return subject.job_id.empty() ? "workload " + subject.workload_key : "job " + subject.job_id;
}

}  // namespace

StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags) {
  WorkloadWords words = flags.words;
  if (words.op.empty() && !flags.what.starts_with("[") &&
      (IsTextFile(flags.what) || dag::FindOp(flags.what).ok())) {
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
  if (workload.has_value()) {
    subject.workload_key = dag::WorkloadKey(*workload->dag);
    return subject;
  }
  if (flags.what.starts_with("[")) {
    subject.workload_key = flags.what;
    return subject;
  }
  if (flags.what.empty()) return NewestJob(archive);
  return JobOrRecord(flags.what, archive);
}

StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive) {
  if (subject.record.has_value()) return std::vector<v1::Record>{*subject.record};
  v1::BestRequest request;
  request.set_job_id(subject.job_id);
  request.set_workload_key(subject.workload_key);
  KILN_ASSIGN_OR_RETURN(auto records, archive.Best(request));
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

StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject) {
  if (!record.dag().empty()) return dag::ParseDag(record.dag());
  if (subject.dag != nullptr) {
    if (dag::WorkloadKey(*subject.dag) == record.workload_key()) return subject.dag;
    return InvalidArgument("record {} is of workload {}, and the operator given is {}", record.id(),
                           record.workload_key(), dag::WorkloadKey(*subject.dag));
  }
  if (const KnownWorkload* known = FindByKey(record.workload_key()); known != nullptr) {
    return known->Build();
  }
  return FailedPrecondition(
      "record {} came from a log and has no DAG: say which operator it is with --op and --args",
      record.id());
}

}  // namespace kiln::client
