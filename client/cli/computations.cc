#include "client/cli/computations.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/utf8.h"
#include "compiler/dag/ops/known_workloads.h"
#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

constexpr size_t kIdDigits = 64;

void AddOnce(NamedComputation computation, std::vector<NamedComputation>& all) {
  const bool there = std::any_of(all.begin(), all.end(), [&](const NamedComputation& other) {
    return other.id == computation.id;
  });
  if (!there) all.push_back(std::move(computation));
}

// Returns the DAG of a task. A list of jobs leaves DAGs out, so the job is read then.
StatusOr<std::string> DagOfTask(const v1::JobStatus& job, int task, Archive& archive) {
  if (!job.tasks(task).spec().dag().empty()) return job.tasks(task).spec().dag();
  KILN_ASSIGN_OR_RETURN(const v1::JobStatus whole, archive.Job(job.id()));
  return whole.tasks(task).spec().dag();
}

std::vector<std::string> InputTypes(std::string_view text) {
  std::vector<std::string> types;
  const auto dag = dag::ParseDag(text);
  if (!dag.ok()) return types;
  for (const dag::OpNode& node : (*dag)->nodes()) {
    if (!node.op->is_placeholder()) continue;
    const std::string type(ir::TypeName(node.op->type()));
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

}  // namespace

std::vector<NamedComputation> KnownComputationsOf(const std::string& key) {
  std::vector<NamedComputation> all;
  for (const dag::KnownComputation* known : dag::KnownByKey(key)) {
    all.push_back({known->id, known->workload->Description(), known->text});
  }
  return all;
}

StatusOr<std::vector<NamedComputation>> ComputationsOf(const std::string& key, Archive& archive) {
  std::vector<NamedComputation> all = KnownComputationsOf(key);
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.JobsWithoutResults());
  for (const v1::JobStatus& job : jobs) {
    for (int i = 0; i < job.tasks_size(); ++i) {
      const v1::TaskStatus& task = job.tasks(i);
      if (task.workload_key() != key || task.workload_id().empty()) continue;
      NamedComputation computation{task.workload_id(), task.spec().description(), ""};
      KILN_ASSIGN_OR_RETURN(computation.dag, DagOfTask(job, i, archive));
      AddOnce(std::move(computation), all);
    }
  }
  // A key of imported records may be bound to a computation that no job has.
  v1::BestRequest request;
  request.add_workload_keys(key);
  KILN_ASSIGN_OR_RETURN(const auto records, archive.Best(request));
  for (const v1::Record& record : records) {
    if (!record.dag().empty()) AddOnce({record.workload_id(), key, record.dag()}, all);
  }
  return all;
}

std::string ComputationText(const NamedComputation& computation) {
  if (computation.id.empty()) return "records of a log that say no more than the key";
  const std::vector<std::string> types = InputTypes(computation.dag);
  return fmt::format("{}{}{}, {}", OneLine(computation.description), types.empty() ? "" : ", of ",
                     fmt::join(types, " and "), computation.id);
}

Status AmbiguousComputation(std::string_view what,
                            const std::vector<NamedComputation>& computations) {
  std::string lines;
  for (const NamedComputation& computation : computations) {
    lines += "\n  " + ComputationText(computation);
  }
  return InvalidArgument(
      "{} fits {} computations; name the operator with --args and --dtype, a record with --record, "
      "or the computation by its identity:{}",
      what, computations.size(), lines);
}

Names NamesOf(const std::vector<v1::JobStatus>& jobs) {
  Names names;
  // Identities by key; "": several.
  std::map<std::string, std::string> ids;
  for (const v1::JobStatus& job : jobs) {
    for (const v1::TaskStatus& task : job.tasks()) {
      const std::string name = OneLine(task.spec().description());
      names.by_id.emplace(task.workload_id(), name);
      names.by_key.emplace(task.workload_key(), name);
      const auto [at, is_new] = ids.emplace(task.workload_key(), task.workload_id());
      if (!is_new && at->second != task.workload_id()) at->second.clear();
    }
  }
  for (const auto& [key, id] : ids) {
    if (id.empty()) names.by_key.erase(key);
  }
  return names;
}

std::string NameOf(const v1::Record& record, const Names& names) {
  const auto& in = record.workload_id().empty() ? names.by_key : names.by_id;
  const auto found =
      in.find(record.workload_id().empty() ? record.workload_key() : record.workload_id());
  if (found != in.end() && !found->second.empty()) return found->second;
  return OneLine(record.workload_key());
}

bool IsWorkloadId(std::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace kiln::client
