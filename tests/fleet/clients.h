// Users of a scheduler: watchers, which follow jobs as `kiln watch` does, and one user who asks for
// jobs and their best records in turns.
//
// A thread for each watcher and one for the user who asks.
#pragma once

#include <chrono>
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
  // Asks for the jobs in turns, one each `pause`, from the first call on.
  void Ask(const std::string& job, std::chrono::milliseconds pause);

 private:
  struct Watcher {
    grpc::ClientContext context;
    std::thread thread;
  };

  void Follow(Watcher& watcher, const std::string& job);
  void Note(const v1::JobEvent& event, const std::string& job);
  void AskInTurns(std::chrono::milliseconds pause, const std::stop_token& stop);

  Figures& figures_;
  const std::function<TimePoint(const std::string& trial)> begin_of_;
  const std::unique_ptr<v1::Scheduler::Stub> stub_;
  std::mutex mutex_;
  std::list<Watcher> watchers_;
  std::vector<std::string> asked_;
  std::jthread asker_;
};

}  // namespace kiln::fleet
