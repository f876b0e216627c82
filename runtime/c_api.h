// Loads networks for the C interface, also on kinds of devices that a C program cannot name.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "runtime/dl_tensor.h"
#include "runtime/executor.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network_device_kinds.h"

struct KilnNetwork {
  std::unique_ptr<kiln::runtime::Executor> executor;
  kiln::runtime::TensorPlace place;
  std::vector<kiln::runtime::WantedTensor> inputs;
  std::vector<kiln::runtime::WantedTensor> outputs;
};

namespace kiln::runtime {

// Does what kiln_load does, but returns the error. kiln_free frees the network. `kinds` and its
// rows outlive it.
StatusOr<KilnNetwork*> LoadNetwork(const char* path, const KilnLoadOptions* options,
                                   NetworkDeviceKinds kinds);

}  // namespace kiln::runtime
