#include "client/cli/networks/compile_one.h"

#include <fmt/format.h>

#include "base/text/utf8.h"
#include "client/cli/compilation_target.h"
#include "client/cli/resolve.h"
#include "client/compile/compile_operator.h"
#include "client/jobs/operator_name.h"
#include "client/network.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"
#include "search/choice/choice.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

// `target` is that of a record, which is used if the flags have none; "": there is no record.
StatusOr<ProgramOptions> OptionsFor(const ComputationToCompile& wanted, const Session& session,
                                    const std::string& target) {
  const std::string& given = wanted.subject.target.empty() ? target : wanted.subject.target;
  KILN_ASSIGN_OR_RETURN(const std::string chosen, TargetOrDefault(given, session));
  KILN_ASSIGN_OR_RETURN(const target::Target named, CompilationTarget(chosen, session));
  return ProgramOptions{.target = named, .strict = wanted.strict, .seed = wanted.seed};
}

// Refuses a job with several tasks. Variants of one task count as one.
Status CheckOneTask(const v1::JobStatus& job, const SubjectFlags& flags) {
  if (flags.task.has_value() || VariantGroupsOf(job).size() <= 1) return OkStatus();
  std::string tasks;
  for (int i = 0; i < job.tasks_size(); ++i)
    tasks += fmt::format("\n  --task {}  {}", i, OneLine(job.tasks(i).spec().description()));
  return InvalidArgument("job {} has {} tasks, choose one of them:{}", job.id(), job.tasks_size(),
                         tasks);
}

StatusOr<v1::Record> RecordOf(const Subject& subject, const SubjectFlags& flags, Archive& archive) {
  if (!subject.job_id.empty()) {
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, archive.Job(subject.job_id));
    KILN_RETURN_IF_ERROR(CheckOneTask(job, flags));
  }
  return OneBestOf(subject, flags, archive);
}

StatusOr<CompiledNetwork> CompileRecordOf(const ComputationToCompile& wanted,
                                          const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(wanted.subject, archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, RecordOf(subject, wanted.subject, archive));
  KILN_ASSIGN_OR_RETURN(const ProgramOptions options, OptionsFor(wanted, session, record.target()));
  KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, DagOfRecord(record, subject, archive));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.Jobs(std::nullopt));
  OperatorToCompile what{
      .dag = std::move(dag), .description = NameOf(record, NamesOf(jobs)), .device = wanted.device};
  if (!record.dag().empty()) {
    KILN_ASSIGN_OR_RETURN(const dag::DagText text, dag::ParseDagText(record.dag()));
    what.ranges = text.ranges;
  }
  return CompileOperator(what, options, search::ChoiceOf(store::RecordOf(record)));
}

}  // namespace

StatusOr<CompiledNetwork> CompileOne(const ComputationToCompile& wanted, const Session& session) {
  KILN_ASSIGN_OR_RETURN(auto workload, NamedWorkload(wanted.subject));
  auto archive = OpenBestRecords(session, wanted.defaults);
  if (!workload.has_value()) {
    if (archive.status().code() == StatusCode::kNotFound) {
      return NotFound("{}; nor is it a job or a record: {}",
                      Message(OperatorOf(wanted.subject.what, "").status()),
                      Message(archive.status()));
    }
    KILN_RETURN_IF_ERROR(archive.status());
    return CompileRecordOf(wanted, session, **archive);
  }
  // Without records the schedule is chosen without measuring.
  if (!archive.ok() && archive.status().code() != StatusCode::kNotFound) return archive.status();
  KILN_ASSIGN_OR_RETURN(const ProgramOptions options, OptionsFor(wanted, session, ""));
  const OperatorToCompile what{.dag = workload->dag,
                               .description = OneLine(workload->description),
                               .ranges = workload->ranges,
                               .device = wanted.device};
  return CompileOperator(what, options, archive.ok() ? archive->get() : nullptr);
}

}  // namespace kiln::client
