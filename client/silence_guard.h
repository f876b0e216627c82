// Ends a streaming call whose server says nothing for too long. The transport notices a peer that
// is gone or frozen (rpc/channel.h); this notices a server that lives and has forgotten the call.
//
// The thread that works on the stream owns the guard and calls Exchange; a thread of the guard
// cancels the call.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"

namespace kiln::client {

class SilenceGuard {
 public:
  // The context outlives this object.
  SilenceGuard(grpc::ClientContext& context, absl::Duration limit);
  SilenceGuard(const SilenceGuard&) = delete;
  SilenceGuard& operator=(const SilenceGuard&) = delete;

  // Runs `io`, a read of the stream or a write to it, and returns its result. If it takes longer
  // than the limit, the call is cancelled, which ends `io`. Time between two calls does not count.
  template <typename Io>
  auto Exchange(const Io& io) {
    return Exchange(limit_, io);
  }
  // Does the same with another limit.
  template <typename Io>
  auto Exchange(absl::Duration limit, const Io& io) {
    Begin(limit);
    auto result = io();
    End();
    return result;
  }

  // Tells whether the call was cancelled.
  bool fired() const;
  // Returns the limit of the last exchange.
  absl::Duration last_limit() const;

 private:
  using SteadyClock = std::chrono::steady_clock;

  void Begin(absl::Duration limit);
  void End();
  void Watch(const std::stop_token& stop);

  grpc::ClientContext& context_;
  const absl::Duration limit_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<SteadyClock::time_point> until_;  // none: nobody waits for the server
  absl::Duration last_limit_ = absl::ZeroDuration();
  bool fired_ = false;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace kiln::client
