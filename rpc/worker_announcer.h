// The worker's half of the tracker contract: a thread that announces the worker for as long as this
// lives.
//
// Asks for the state before every announcement, retries for ever while the tracker is away (at
// least once a second), and says `leaving` when stopped. Logs when the tracker is found, lost, or
// refuses the worker. Thread-safe, but for Stop: that and the destructor belong to the owner.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/secret.h"
#include "proto/tracker.grpc.pb.h"

namespace kiln {

class WorkerAnnouncer {
 public:
  // `tracker` is HOST:PORT; "" = there is none, and this does nothing. `state` is called by this
  // object's thread, never after Stop.
  WorkerAnnouncer(std::string tracker, std::function<v1::WorkerState()> state,
                  const Secret& secret = {});
  ~WorkerAnnouncer();  // Stop
  WorkerAnnouncer(const WorkerAnnouncer&) = delete;
  WorkerAnnouncer& operator=(const WorkerAnnouncer&) = delete;

  // Ends the thread and tells the tracker that the worker leaves; takes a second at most.
  void Stop();

  // The state has changed: announces it now.
  void AnnounceNow();

  // Whether the tracker has accepted the latest announcement.
  bool connected() const;
  // Waits until it has; false after `timeout` or on Stop. Without a tracker: false at once.
  bool WaitConnected(absl::Duration timeout);

 private:
  void Run();
  grpc::Status AnnounceOnce(bool leaving, absl::Duration deadline, std::stop_token stop,
                            v1::AnnounceReply* reply);
  void Note(const grpc::Status& status);

  const std::string tracker_;
  const std::function<v1::WorkerState()> state_;
  std::unique_ptr<v1::Tracker::Stub> stub_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  bool announced_ = false;  // ever
  bool now_ = false;
  std::string last_error_;
  std::string worker_id_;
  std::thread thread_;
};

}  // namespace kiln
