// The connections of a scheduler to its workers. All jobs share them: the leases of a large fleet
// move from job to job, and a job that kept connections of its own would soon have one to each
// worker.
//
// Thread-safe. Memory: about 6 KiB for each worker that was called in the last kKeep_s seconds,
// however many jobs and trials there are.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "rpc/farm_access.h"

namespace kiln::scheduler {

struct WorkerChannel;

class WorkerChannels {
 public:
  // A connection that nobody has asked for this long is closed once another one is made. Calls that
  // go on hold their connection themselves.
  static constexpr double kKeep_s = 600;

  // `clock` outlives this object.
  explicit WorkerChannels(Clock& clock = Clock::Real());
  ~WorkerChannels();

  // Returns the connection to the address; it is made if there is none. `access` is that of the
  // workers' farm, the same in all calls. Does not wait.
  std::shared_ptr<WorkerChannel> At(const std::string& address, const FarmAccess& access);

  // Returns the number of connections that are kept.
  size_t size() const;

 private:
  struct Kept {
    std::shared_ptr<WorkerChannel> channel;
    double asked_s = 0;  // when it was asked for last
  };

  Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Kept> kept_;  // key: address
  double look_s_ = 0;                 // the earliest time of the next look for unused ones
};

}  // namespace kiln::scheduler
