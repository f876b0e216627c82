// Every method of a service, called as a stranger would.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "base/secret.h"
#include "base/status.h"

namespace kiln {

// One empty request to each method of the service at `address`, with `secret`, and how the call
// ended, by method. For streams too; a call that has not ended after ten seconds is cut.
std::map<std::string, Status> CallAllMethods(const std::string& address,
                                             const google::protobuf::ServiceDescriptor& service,
                                             const Secret& secret);

// All methods of the service, which asks for `secret`, refuse who has none or another one, and let
// in who has it. Fails the test otherwise.
void ExpectDoorAtAllMethods(const std::string& address,
                            const google::protobuf::ServiceDescriptor& service,
                            const Secret& secret);

}  // namespace kiln
