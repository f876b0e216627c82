// All that a server needs of OpenSSL for its connections, with the keys as they are now.
#pragma once

#include <memory>
#include <mutex>

#include "base/keys/live_keys.h"
#include "base/status.h"

// OpenSSL's SSL_CTX.
struct ssl_ctx_st;

namespace kiln {

// Thread-safe.
class ServerTls {
 public:
  explicit ServerTls(std::shared_ptr<LiveKeys> keys) : keys_(std::move(keys)) {}

  // Returns the settings for a new connection: TLS 1.2 or newer, and the certificate that the
  // folder of keys has now. Clients are asked for a certificate. One without, or with a stranger's,
  // gets in all the same, because the guard (rpc/http/http_guard.h) can say what is wrong and an
  // alert of TLS cannot. Costs some 100 us when the keys have changed. Internal if OpenSSL refuses
  // the keys.
  StatusOr<std::shared_ptr<ssl_ctx_st>> Now();

 private:
  const std::shared_ptr<LiveKeys> keys_;
  std::mutex mutex_;
  // The keys that context_ was made of. Both are guarded by mutex_.
  std::shared_ptr<const KeyFolder> given_;
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace kiln
