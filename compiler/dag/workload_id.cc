#include "compiler/dag/workload_id.h"

#include "base/hash/digest.h"
#include "compiler/dag/text.h"

namespace kiln::dag {

std::string WorkloadId(const Dag& dag) { return Sha256Hex(PrintDag(dag)); }

}  // namespace kiln::dag
