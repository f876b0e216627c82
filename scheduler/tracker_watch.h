// Learns from the tracker which certificates were revoked, also while no job runs: the scheduler is
// where people come in.
#pragma once

#include <string>
#include <thread>

#include "rpc/farm_access.h"

namespace kiln::scheduler {

// Has one thread, which asks every few seconds and writes newer lists into the folder of the keys.
// Without keys it does nothing.
class RevocationWatch {
 public:
  // `tracker` is HOST:PORT. `scheduler_id` names the caller to the tracker.
  RevocationWatch(std::string tracker, std::string scheduler_id, FarmAccess access);

 private:
  std::jthread thread_;
};

}  // namespace kiln::scheduler
