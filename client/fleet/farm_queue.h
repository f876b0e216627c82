// The queue of a farm, as far as a fleet needs it: who works, who waits, and the modes of workers.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

// All functions belong to one thread, and wait for the farm's answer.
class FarmQueue {
 public:
  virtual ~FarmQueue() = default;

  // Returns the workers of the farm and the requests that wait for them.
  virtual StatusOr<v1::ListReply> List() = 0;
  // Asks a worker for a mode. NotFound = the worker is gone.
  virtual Status SetMode(const std::string& worker_id, v1::WorkerMode mode,
                         const std::string& why) = 0;
};

}  // namespace kiln::client
