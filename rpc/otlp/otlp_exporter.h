// Sends spans to a collector of OpenTelemetry, in batches, from a thread of its own.
//
// Nobody waits for the collector: what comes while the queue is full is dropped and counted. A
// batch that the collector has no time for is sent again for a while, with pauses that grow, and
// then dropped and counted too. The log says when the collector begins to fail, and when it works
// again.
//
// Add is thread-safe. Cost of Add: a lock, and a copy of the bytes behind those that wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "rpc/retry_pause.h"

namespace kiln {

class OtlpExporter {
 public:
  // Sends the body and returns the status of HTTP. An error: there was no answer.
  using Post = std::function<StatusOr<int>(const std::string& body)>;

  struct Options {
    std::string service = "kiln";
    // For messages: "127.0.0.1:4318".
    std::string collector = {};
    // The most that waits, counted in calls of Add.
    size_t most_waiting = 16'384;
    // The most of one batch.
    size_t batch = 512;
    // A batch that is not full waits so long for more.
    absl::Duration gather = absl::Seconds(1);
    // A batch is sent again for so long.
    absl::Duration patience = absl::Seconds(20);
    Random random = RealRandom();
    // Outlives the exporter.
    Clock* clock = &Clock::Real();
  };

  // `post` is called in the exporter's thread. It should give up within seconds.
  OtlpExporter(Options options, Post post);
  // Sends what waits, once; what is not taken is lost.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  // Takes the spans of a trial or a job, as AppendOtlp encodes them.
  void Add(std::string_view encoded);

  // Counted in calls of Add.
  struct Counts {
    uint64_t sent = 0;
    uint64_t dropped = 0;
  };
  Counts counts() const;

 private:
  // The encoded spans of so many calls of Add.
  struct Batch {
    std::string encoded = {};
    size_t count = 0;
  };

  void Run();
  // Waits for a batch. Empty: the exporter stops.
  Batch Take();
  void Send(const Batch& batch);
  // Waits until the pause is over, or the exporter stops.
  void Rest(absl::Duration pause);
  void Note(bool taken, const std::string& problem, size_t count);
  bool stopping() const;

  const Options options_;
  const Post post_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All but the last one are full.
  std::deque<Batch> waiting_;
  // The calls of Add in `waiting_`.
  size_t count_ = 0;
  Counts counts_;
  bool stopping_ = false;
  bool is_failing_ = false;  // belongs to the thread
  std::thread thread_;       // last: it uses the other members
};

}  // namespace kiln
