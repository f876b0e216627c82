// Calls every method of a service, for tests of who gets in.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>

#include "base/server/secret.h"
#include "base/status.h"

namespace kiln {

// Sends one empty request over the channel to each method of the service, streams too. Returns how
// each call ended, by the method's path. A call that has not ended after ten seconds is cut.
std::map<std::string, Status> CallAllMethods(const std::shared_ptr<grpc::Channel>& channel,
                                             const google::protobuf::ServiceDescriptor& service);

// Fails the test unless all methods of the service, which asks for `secret`, let in callers that
// have the secret, and refuse callers that have none or another one.
void ExpectAdmissionAtAllMethods(const std::string& address,
                                 const google::protobuf::ServiceDescriptor& service,
                                 const Secret& secret);

}  // namespace kiln
