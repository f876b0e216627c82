// Channels of clients to our services: quick reconnects, large messages, no proxy, and the secret
// of the farm with each call.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "base/server/secret.h"

namespace kiln {

// Returns a channel to `address`, HOST:PORT. Never fails and does not wait: the first call
// connects. A lost connection is tried again at least twice a second, so that the restart of a peer
// costs no more than that. A peer counts as gone if it is silent for half a minute while a call
// waits for it.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Secret& secret = {});

}  // namespace kiln
