// Finds the devices of a job that measure unlike the others of their model, by their canaries
// (device/unlike_canary.h). The final races of the job leave such a device out.
//
// Thread-safe. A device is told by DeviceIdentity; what its newest lease says of it counts.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "proto/tracker.pb.h"

namespace kiln::scheduler {

class UnlikeDevices {
 public:
  // Takes the state of a runner that the job has leased.
  void Note(const v1::WorkerState& runner);

  // Returns the ids of the runners whose devices are unlike the others now.
  std::vector<std::string> Runners() const;
  // Returns a sentence for each device that was unlike the others at some time, the oldest first.
  std::vector<std::string> notices() const;

 private:
  struct Device {
    std::string runner;  // id
    std::string address;
    double canary_s = 0;
    bool is_gpu = false;
  };
  using Devices = std::map<std::string, Device>;  // key: identity

  std::vector<Devices::const_iterator> Unlike(double* usual_s) const;

  mutable std::mutex mutex_;
  Devices devices_;
  std::set<std::string> said_;  // identities with a notice
  std::vector<std::string> notices_;
};

}  // namespace kiln::scheduler
