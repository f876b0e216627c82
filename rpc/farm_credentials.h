// Credentials of channels to the daemons of a farm, over TLS.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>

#include "base/keys/live_keys.h"
#include "rpc/server_watch.h"

namespace kiln {

// Returns credentials that show the certificate of the folder of `keys`, and that accept a server
// only if `servers` does: its certificate is of the same farm, holds now, and is a daemon's. The
// address does not matter: a daemon may answer at any. A server that is refused gets no request;
// the call's status is Unavailable and ends with the sentence of Verify (base/keys/verify.h).
//
// A new certificate in the folder is shown by connections from a second later on; open ones go on
// with the old one. A thread of gRPC reads the files once a second as long as the credentials or a
// channel of them live, so a process makes the credentials once.
std::shared_ptr<grpc::ChannelCredentials> FarmCredentials(const LiveKeys& keys,
                                                          std::shared_ptr<ServerWatch> servers);

}  // namespace kiln
