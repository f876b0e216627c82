// Converts Status to gRPC's status and back. The codes are the same numbers on both sides; details
// are not carried.
#pragma once

#include <grpcpp/support/status.h>

#include "base/status.h"

namespace kiln {

// Cuts a message beyond a few kB in its middle: gRPC sends it as a header, and a large header fails
// the call.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

}  // namespace kiln
