// The queue of a farm by the RPCs of its scheduler.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "client/fleet/farm_queue.h"
#include "client/session.h"

namespace kiln::client {

// Each call connects when there is no connection, so that a scheduler that restarts is found again.
class SchedulerQueue : public FarmQueue {
 public:
  // The session names a scheduler.
  explicit SchedulerQueue(Session session) : session_(std::move(session)) {}

  StatusOr<v1::ListReply> List() override;
  Status SetMode(const std::string& worker_id, v1::WorkerMode mode,
                 const std::string& why) override;

 private:
  const Session session_;
  // Null until the first change of a mode.
  std::unique_ptr<SchedulerClient> client_;
};

}  // namespace kiln::client
