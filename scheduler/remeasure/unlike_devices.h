// Finds the devices of a job that measure unlike the others of their model, by their canaries
// (device/unlike_canary.h). The final races of the job leave such a device out.
//
// Thread-safe. A device is told by its identity; what its newest lease says of it counts. Memory: a
// pointer and a number for each device.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "scheduler/values/known_runners.h"

namespace kiln::scheduler {

class UnlikeDevices {
 public:
  // Takes a runner that the job has leased, and the seconds that its canary takes now. Costs the
  // devices' number times its logarithm if the device is new or its canary another one.
  void Note(KnownRunnerPtr runner, double canary_s);

  // Returns the ids of the runners whose devices are unlike the others now.
  std::vector<std::string> Runners() const;
  // Returns a sentence for each device that was unlike the others at some time, the oldest first.
  std::vector<std::string> notices() const;

 private:
  struct Device {
    KnownRunnerPtr runner;
    double canary_s = 0;
  };
  struct ByIdentity {
    bool operator()(const Device& a, const Device& b) const {
      return a.runner->identity < b.runner->identity;
    }
  };
  using Devices = std::set<Device, ByIdentity>;

  std::vector<Devices::const_iterator> Unlike(double* usual_s) const;

  mutable std::mutex mutex_;
  Devices devices_;
  std::set<std::string> said_;  // identities with a notice
  std::vector<std::string> notices_;
};

}  // namespace kiln::scheduler
