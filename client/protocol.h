// Whether a scheduler's calls are those of this program.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/version.pb.h"

namespace kiln::client {

// FailedPrecondition: the scheduler at `address` has other calls than this program, with both
// versions.
Status CheckProtocol(const v1::VersionReply& scheduler, const std::string& address);

}  // namespace kiln::client
