#include "runner/device.h"

namespace kiln::runner {

StatusOr<Findings> Device::Inspect(const Inspection& inspection) {
  Findings findings;
  for (const Buffer* buffer : inspection.guards) findings.guards.push_back(CheckGuards(*buffer));
  for (const Buffer* buffer : inspection.sums) {
    KILN_ASSIGN_OR_RETURN(const uint64_t sum, Checksum(*buffer));
    findings.sums.push_back(sum);
  }
  for (const Inspection::Pair& pair : inspection.pairs) {
    KILN_ASSIGN_OR_RETURN(Comparison comparison,
                          Compare(*pair.got, *pair.want, inspection.tolerance));
    findings.comparisons.push_back(std::move(comparison));
  }
  return findings;
}

}  // namespace kiln::runner
