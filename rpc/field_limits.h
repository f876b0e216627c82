// Limits on the fields of our messages. They are many times what a farm's messages need, and far
// less than what would hurt a service that keeps the message.
#pragma once

#include <google/protobuf/message.h>

#include "base/status.h"

namespace kiln {

// InvalidArgument "JobSpec.name has 67108864 bytes, at most 1024 are accepted" for the first
// string, list or map that is too long, or for text that is not UTF-8, in the message or in a
// message within. The cost is a walk over the fields that are set.
Status CheckFields(const google::protobuf::Message& message);

}  // namespace kiln
