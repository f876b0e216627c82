// Channels of clients to our services: quick reconnects, large messages, no proxy, and the access
// of the farm: TLS with keys, or the secret with each call.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "rpc/farm_access.h"

namespace kiln {

// Returns a channel to `address`, HOST:PORT. Never fails and does not wait: the first call
// connects. A lost connection is tried again at least twice a second, so that the restart of a peer
// costs no more than that. A peer counts as gone if it is silent for half a minute while a call
// waits for it.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const FarmAccess& access = {});

// Returns a channel of TLS that shows no certificate and believes every server. It finds out what a
// server that does not answer in plain text asks for; nothing of worth is sent on it.
std::shared_ptr<grpc::Channel> MakeStrangersChannel(const std::string& address);

}  // namespace kiln
