// How large the fields of our messages may be: what a message of a farm needs, many times over, and
// far less than what would hurt a service that keeps it.
#pragma once

#include <google/protobuf/message.h>

#include "base/status.h"

namespace kiln {

// InvalidArgument "JobSpec.name has 67108864 bytes, at most 1024 are taken" for the first string,
// list or map that is too long, or text that is not UTF-8, in the message or within. Cost: a walk
// over the fields that are set.
Status CheckFields(const google::protobuf::Message& message);

}  // namespace kiln
