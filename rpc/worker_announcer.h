// The worker's half of the tracker contract: a thread that announces the worker for as long as this
// object lives.
//
// The thread asks for the state before every announcement, retries for ever (at least once a
// second) while the tracker is away, and says `leaving` when it is stopped. It takes the revoked
// certificates and the wish of an operator that the tracker tells of, and announces the worker at
// once when its mode has changed. It logs when the tracker is found, lost, or refuses the worker.
// Thread-safe, except that Stop and the destructor belong to the owner.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/farm_access.h"
#include "rpc/retry_pause.h"
#include "rpc/worker_modes.h"

namespace kiln {

class WorkerAnnouncer {
 public:
  struct Options {
    // HOST:PORT; "" = there is no tracker, and the announcer does nothing.
    std::string tracker;
    // Called by this object's thread, never after Stop.
    std::function<v1::WorkerState()> state;
    FarmAccess access = {};
    // Adds its part to the state. Null: the worker serves, whatever is asked of it. Outlives this
    // object.
    WorkerModes* modes = nullptr;
    Random random = RealRandom();
  };
  explicit WorkerAnnouncer(Options options);
  // Calls Stop.
  ~WorkerAnnouncer();
  WorkerAnnouncer(const WorkerAnnouncer&) = delete;
  WorkerAnnouncer& operator=(const WorkerAnnouncer&) = delete;

  // Ends the thread and tells the tracker that the worker leaves; takes a second at most.
  void Stop();

  // Announces the worker now, because its state has changed.
  void AnnounceNow();

  // Returns whether the tracker has accepted the latest announcement.
  bool connected() const;
  // Waits until the tracker has accepted an announcement. False after `timeout` or on Stop, and at
  // once if there is no tracker.
  bool WaitConnected(absl::Duration timeout);

 private:
  void Run();
  grpc::Status AnnounceOnce(bool leaving, absl::Duration deadline, std::stop_token stop,
                            v1::AnnounceReply* reply);
  void Note(const grpc::Status& status);

  void TakeReply(const v1::AnnounceReply& reply);

  const Options options_;
  std::unique_ptr<v1::Tracker::Stub> stub_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  // Whether the worker was ever announced.
  bool announced_ = false;
  bool now_ = false;
  std::string last_error_;
  std::string worker_id_;
  WorkerModes::Subscription mode_changes_;
  std::thread thread_;
};

}  // namespace kiln
