// Facts that runners say of themselves and that do not change while their processes live. Jobs
// share them, so that a job with a thousand runners keeps a pointer for each of them and no texts.
//
// Thread-safe. Memory: about a kilobyte for each runner that was leased since the scheduler began.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "proto/tracker.pb.h"

namespace kiln::scheduler {

struct KnownRunner {
  int number = 0;  // from 0 on; no other runner has it
  std::string id;
  std::string address;
  std::string identity;  // DeviceIdentity
  // The device model as records keep it. "" if the runner announces none, or one that is not valid.
  std::string device_model;
  bool is_gpu = false;
};
using KnownRunnerPtr = std::shared_ptr<const KnownRunner>;

class KnownRunners {
 public:
  // Returns the facts that the runner had when it was first asked for.
  KnownRunnerPtr Of(const v1::WorkerState& runner);

 private:
  std::mutex mutex_;
  std::map<std::string, KnownRunnerPtr> runners_;  // key: id
};

}  // namespace kiln::scheduler
