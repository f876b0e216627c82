// The calls of a service that stream: there are only so many, and none may stand still.
//
// A call stands still while it waits for its client: for the next request, or until it takes the
// next answer. One that does so for longer than the limit is ended with DEADLINE_EXCEEDED, which
// its handler sees as the end of the stream. Thread-safe; one thread, which looks a few times
// within the limit.
#pragma once

#include <grpcpp/server_context.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace kiln::scheduler {

class Streams {
 public:
  struct Options {
    int most = 500;
    absl::Duration standstill = absl::Minutes(2);
  };

  explicit Streams(const Options& options);
  ~Streams();  // no handler may be at work

  // Of one call: made at the begin of its handler and gone at the end, in its thread.
  class Stream;
  // ResourceExhausted when there are too many.
  StatusOr<Stream> Open(grpc::ServerContext& context);

 private:
  struct Call {
    grpc::ServerContext* context;
    absl::Time waits_since;  // for its client; InfiniteFuture: it does not
  };

  void Look(const std::stop_token& stop);
  void EndThoseThatStandStill();  // lock held
  void Close(std::list<Call>::iterator call);
  void NoteWait(std::list<Call>::iterator call, absl::Time since);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::list<Call> calls_;
  std::jthread thread_;
};

class Streams::Stream {
 public:
  Stream(Stream&& other) noexcept
      : streams_(std::exchange(other.streams_, nullptr)), call_(other.call_) {}
  ~Stream() {
    if (streams_ != nullptr) streams_->Close(call_);
  }

  // `io`, a read from the client or a write to it, and what it returns.
  template <typename Io>
  bool Exchange(const Io& io) {
    streams_->NoteWait(call_, absl::Now());
    const bool done = io();
    streams_->NoteWait(call_, absl::InfiniteFuture());
    return done;
  }

 private:
  friend class Streams;
  Stream(Streams* streams, std::list<Call>::iterator call) : streams_(streams), call_(call) {}

  Streams* streams_;
  std::list<Call>::iterator call_;
};

}  // namespace kiln::scheduler
