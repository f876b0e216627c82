// Announces simulated workers at a tracker for as long as this object lives, each over a connection
// of its own, as processes would.
//
// Calls are asynchronous and hold no thread. The tracker says when a worker announces itself next.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/tracker.grpc.pb.h"
#include "tests/fleet/figures.h"
#include "tests/fleet/timers.h"

namespace kiln::fleet {

class Announcements {
 public:
  // `figures` and `timers` outlive this object.
  Announcements(const std::string& tracker, std::vector<v1::WorkerState> workers, Figures& figures,
                Timers& timers);
  // Begins no further call, and waits for those that go on.
  ~Announcements();

  // Waits until the tracker has taken an announcement of each worker.
  void WaitUntilAll();

 private:
  struct Worker {
    v1::AnnounceRequest request;
    std::unique_ptr<v1::Tracker::Stub> stub;
    bool taken = false;  // the tracker has taken an announcement
  };
  struct Call;

  void Announce(Worker& worker);
  void Take(Worker& worker, const grpc::Status& status, const v1::AnnounceReply& reply);

  Figures& figures_;
  Timers& timers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t taken_ = 0;
  size_t open_ = 0;  // calls that go on, and those that wait for their time
  bool ends_ = false;
};

}  // namespace kiln::fleet
