// How clients connect to our services: quick reconnects, large messages, no proxy.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace kiln {

// `address` is HOST:PORT. Never fails and does not wait: the first call connects, and a lost
// connection is tried again at least twice a second, so that the restart of a peer costs no more
// than that.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

}  // namespace kiln
