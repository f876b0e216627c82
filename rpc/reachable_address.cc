#include "rpc/reachable_address.h"

namespace kiln {

StatusOr<HostPort> ReachableAddress(const std::string& advertise, HostPort bound) {
  if (!advertise.empty()) return ParseHostPort(advertise);
  if (bound.host == "0.0.0.0" || bound.host == "::") bound.host = HostName();
  return bound;
}

}  // namespace kiln
