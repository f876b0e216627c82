// Users of a scheduler: watchers, which follow jobs as `kiln watch` does, and one user who asks for
// jobs and their best records in turns.
//
// Watchers run in gRPC's threads, which are few: a thread that waits in a blocking read would take
// turns at reading the sockets of the whole fleet. The user who asks has a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/scheduler.grpc.pb.h"
#include "tests/fleet/figures.h"

namespace kiln::fleet {

class Clients {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `begin_of` says when the Build of the trial JOB/NUMBER came; zero: it is not known. `figures`
  // outlives this object.
  Clients(const std::string& scheduler, Figures& figures,
          std::function<TimePoint(const std::string& trial)> begin_of);
  // Ends all streams.
  ~Clients();

  void Watch(const std::string& job);
  // Returns the number of records of the watched job that has the fewest; 0 if none is watched.
  int64_t FewestRecords();
  // Asks for the jobs in turns, one each `pause`, from the first call on.
  void Ask(const std::string& job, std::chrono::milliseconds pause);

 private:
  class Watcher;

  void Note(const v1::JobEvent& event, const std::string& job);
  void AskInTurns(std::chrono::milliseconds pause, const std::stop_token& stop);

  Figures& figures_;
  const std::function<TimePoint(const std::string& trial)> begin_of_;
  const std::unique_ptr<v1::Scheduler::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable ended_;  // notified when a stream has ended
  size_t open_ = 0;                // number of streams
  std::list<std::unique_ptr<Watcher>> watchers_;
  std::vector<std::string> asked_;
  std::jthread asker_;
};

}  // namespace kiln::fleet
