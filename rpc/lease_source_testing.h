// A LeaseSource without a tracker, for tests of schedulers. The test adds workers, and says when
// leases are lost or wanted. Thread-safe. Handles may outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rpc/lease_source.h"

namespace kiln {

class FakeLeaseSource : public LeaseSource {
 public:
  FakeLeaseSource();
  ~FakeLeaseSource() override;

  // Adds a worker with a new id. Its slots can be acquired from now on.
  void AddWorker(v1::WorkerState worker);
  // Loses the leases on the worker and gives out no more.
  void RemoveWorker(const std::string& id);
  // Makes all leases on the worker wanted, until they are let go, or not wanted any more.
  void Want(const std::string& id, bool wanted = true);

  int held() const;
  // Number of leases that were ever acquired.
  int acquired() const;

  using LeaseSource::Acquire;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace kiln
