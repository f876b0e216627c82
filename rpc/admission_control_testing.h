// Calls every method of a service without the secret.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "base/server/secret.h"
#include "base/status.h"

namespace kiln {

// Sends one empty request with `secret` to each method of the service at `address`, streams too.
// Returns how each call ended, by method. A call that has not ended after ten seconds is cut.
std::map<std::string, Status> CallAllMethods(const std::string& address,
                                             const google::protobuf::ServiceDescriptor& service,
                                             const Secret& secret);

// Fails the test unless all methods of the service, which asks for `secret`, let in callers that
// have the secret, and refuse callers that have none or another one.
void ExpectAdmissionAtAllMethods(const std::string& address,
                                 const google::protobuf::ServiceDescriptor& service,
                                 const Secret& secret);

}  // namespace kiln
