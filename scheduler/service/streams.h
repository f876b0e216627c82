// Limits the streaming calls of a service: their number in all, per caller, and per caller and
// kind. No stream may stand still.
//
// A caller is a host, so a host that opens many streams leaves room for the others.
//
// A call stands still while it waits for its client: for the next request, or until the client
// takes the next answer. A call that stands still for longer than the limit is ended with
// DEADLINE_EXCEEDED, which its handler sees as the end of the stream. Thread-safe; has one thread.
#pragma once

#include <grpcpp/server_context.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
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
    int most_of_caller = 250;
    int most_of_kind = 125;  // most streams of one kind by one caller
    absl::Duration standstill = absl::Minutes(2);
  };

  explicit Streams(const Options& options);
  ~Streams();  // no handler may be at work

  // One call. Its handler makes the stream at its begin and drops it at its end, in its thread.
  class Stream;
  // `kind` names the call in messages: "import". ResourceExhausted if there are too many streams in
  // all, by the caller, or of this kind by the caller.
  StatusOr<Stream> Open(grpc::ServerContext& context, std::string_view kind);

 private:
  struct Call {
    grpc::ServerContext* context;
    std::string kind;
    std::string caller;
    absl::Time waits_since;  // when the wait for the client began; InfiniteFuture: no wait
  };

  void Look(const std::stop_token& stop);
  Status CheckRoom(std::string_view kind, std::string_view caller) const;  // lock held
  // Returns the time until the next call can have stood still for too long. Lock held.
  absl::Duration CancelStalledStreams();
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

  // Runs `io`, a read from the client or a write to it, and returns its result.
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
