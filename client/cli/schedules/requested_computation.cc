#include "client/cli/schedules/requested_computation.h"

#include <utility>

#include "base/text/utf8.h"
#include "client/cli/compilation_target.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/target/recorded.h"
#include "scheduler/words/format.h"

namespace kiln::client {

Status CheckHasSchedules(const v1::Record& record) {
  if (!handwritten::IsKernelPoint(record.steps())) return OkStatus();
  return InvalidArgument(
      "trial {} is of a hand-written kernel, which has parameters and no schedule: kiln best and "
      "kiln show print them",
      TrialName(record));
}

StatusOr<RequestedComputation> RequestedComputationOfRecord(const v1::Record& record,
                                                            const Subject& subject,
                                                            const Names& names, Archive& archive) {
  KILN_RETURN_IF_ERROR(CheckHasSchedules(record));
  RequestedComputation asked;
  KILN_ASSIGN_OR_RETURN(asked.dag, DagOfRecord(record, subject, archive));
  KILN_ASSIGN_OR_RETURN(target::RecordedTarget recorded,
                        target::ParseRecordedTarget(record.target()));
  asked.target = std::move(recorded.target);
  asked.name = NameOf(record, names);
  return asked;
}

StatusOr<RequestedComputation> RequestedComputationOf(const SubjectFlags& flags,
                                                      const Session& session, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(const auto workload, NamedWorkload(flags));
  if (workload.has_value()) {
    RequestedComputation asked;
    KILN_ASSIGN_OR_RETURN(const std::string target, TargetOrDefault(flags.target, session));
    KILN_ASSIGN_OR_RETURN(asked.target, CompilationTarget(target, session));
    asked.dag = workload->dag;
    asked.name = OneLine(workload->description);
    return asked;
  }
  KILN_ASSIGN_OR_RETURN(const Subject subject, Resolve(flags, archive));
  KILN_ASSIGN_OR_RETURN(const v1::Record record, OneBestOf(subject, flags, archive));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive.JobsWithoutResults());
  return RequestedComputationOfRecord(record, subject, NamesOf(jobs), archive);
}

}  // namespace kiln::client
