// The calls of a service that stream: there are only so many, of each caller and kind, too, and none
// may stand still.
//
// A caller is a host: whoever opens many streams leaves room for the others.
//
// A call stands still while it waits for its client: for the next request, or until it takes the
// next answer. One that does so for longer than the limit is ended with DEADLINE_EXCEEDED, which
// its handler sees as the end of the stream. Thread-safe; one thread.
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
    int most_of_kind = 125;  // of one caller
    absl::Duration standstill = absl::Minutes(2);
  };

  explicit Streams(const Options& options);
  ~Streams();  // no handler may be at work

  // Of one call: made at the begin of its handler and gone at the end, in its thread.
  class Stream;
  // `kind` for what is said: "import". ResourceExhausted when there are too many, in all, of the
  // caller, or of the kind and the caller.
  StatusOr<Stream> Open(grpc::ServerContext& context, std::string_view kind);

 private:
  struct Call {
    grpc::ServerContext* context;
    std::string kind;
    std::string caller;
    absl::Time waits_since;  // for its client; InfiniteFuture: it does not
  };

  void Look(const std::stop_token& stop);
  Status CheckRoom(std::string_view kind, std::string_view caller) const;  // lock held
  // How long until the next one can have stood still for too long. Lock held.
  absl::Duration EndThoseThatStandStill();
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
