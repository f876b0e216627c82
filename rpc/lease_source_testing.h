// A LeaseSource without a tracker, for tests of schedulers: workers are what the test adds, and
// leases are lost and wanted when it says so. Thread-safe. Handles may outlive it.
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

  // Its slots can be acquired from now on. The id is new.
  void AddWorker(v1::WorkerState worker);
  // Loses the leases on it and gives out no more.
  void RemoveWorker(const std::string& id);
  // All leases on it are wanted, until they are let go.
  void Want(const std::string& id);

  int held() const;
  int acquired() const;  // ever

  using LeaseSource::Acquire;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace kiln
