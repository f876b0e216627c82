#include "client/protocol.h"

#include "base/text/utf8.h"
#include "base/version.h"

namespace kiln::client {

Status CheckProtocol(const v1::VersionReply& scheduler, const std::string& address) {
  if (scheduler.protocol() == kProtocol) return OkStatus();
  return FailedPrecondition(
      "the scheduler at {} is kiln {} of protocol {}, this is kiln {} of protocol {}; run the same "
      "kiln at both ends",
      address, OneLine(scheduler.version()), scheduler.protocol(), kVersion, kProtocol);
}

}  // namespace kiln::client
