// What the keys that a runner serves say of its device.
#pragma once

#include <string>

#include "proto/tracker.pb.h"

namespace kiln::scheduler {

// The key that runners of devices like this one serve, of which the job may have several: the
// device's name where it is a key, as of GPUs (whose last key is their own UUID), else the last and
// most exact one. "" without keys.
std::string ModelKey(const v1::WorkerState& runner);

// What tells this device from others like it, also after a restart of its runner: the last key
// where that is its own (the UUID of a GPU), else the runner's id.
std::string DeviceIdentity(const v1::WorkerState& runner);

}  // namespace kiln::scheduler
