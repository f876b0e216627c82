// The computation and target of which a kiln choice command speaks.
#pragma once

#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/cli/computations.h"
#include "client/cli/resolve.h"
#include "client/cli/subject_flags.h"
#include "client/session.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::client {

struct RequestedComputation {
  dag::DagPtr dag;
  // Name for people.
  std::string name;
  target::Target target;
};

// Refuses the record of a hand-written kernel.
Status CheckHasSchedules(const v1::Record& record);

// Returns the record's computation and target.
StatusOr<RequestedComputation> RequestedComputationOfRecord(const v1::Record& record,
                                                            const Subject& subject,
                                                            const Names& names, Archive& archive);

// Returns the named computation for the target of the flags, or those of the subject's best record.
StatusOr<RequestedComputation> RequestedComputationOf(const SubjectFlags& flags,
                                                      const Session& session, Archive& archive);

}  // namespace kiln::client
