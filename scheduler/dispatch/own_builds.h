// Candidates whose binaries the job's user makes: their queue and its threads, and what a call and
// its answer mean. Knows no RPC.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "proto/builder.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/dispatch_items.h"

namespace kiln::scheduler {

// A candidate with its source.
struct OwnBuildItem {
  BuildItemPtr build;
  std::string builder;   // id of the builder that generated the source
  v1::BuildReply reply;  // its answer
};

v1::BuildCall BuildCallOf(const Dispatcher::Job& job, const OwnBuildItem& item);
// Time limit of a call: that of a build.
absl::Duration OwnBuildLimit(const Dispatcher::Job& job);
// Puts what the user's function made, in `took_s` seconds, into the reply of the builder. `answer`
// is an answer or DeadlineExceeded. An artifact has no signature then, because no builder vouches
// for its binary.
void SetOwnBinary(const Dispatcher::Job& job, StatusOr<v1::CallbackReply> answer, double took_s,
                  v1::BuildReply& reply);

// Thread-safe.
class OwnBuildQueue {
 public:
  // Runs in a thread of the queue. Must end soon after `stop`.
  using Work = std::function<void(OwnBuildItem item, const std::stop_token& stop)>;

  OwnBuildQueue(int threads, Work work);
  // Stops. Items that are left are dropped.
  ~OwnBuildQueue();

  void Push(OwnBuildItem item);
  // Lets threads end after the item in hand, which is told to stop. Does not block.
  void Stop();
  // Waits until all threads have ended.
  void Join();

 private:
  void Run();

  const Work work_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OwnBuildItem> queue_;
  std::vector<std::thread> threads_;  // last: they use the other members
};

}  // namespace kiln::scheduler
