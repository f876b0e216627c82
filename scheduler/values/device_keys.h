// Reads from the keys that a runner serves which device it has.
#pragma once

#include <string>

#include "proto/tracker.pb.h"

namespace kiln::scheduler {

// Returns the key that all runners of devices like this one serve. A GPU's name is such a key,
// while its last key is its own UUID. If the device's name is no key, the last and most exact key
// is returned. "" if the runner has no keys.
std::string ModelKey(const v1::WorkerState& runner);

// Returns a name that tells this device from others like it and survives a restart of the runner:
// the last key if it belongs to this device alone (the UUID of a GPU), else the runner's id.
std::string DeviceIdentity(const v1::WorkerState& runner);

}  // namespace kiln::scheduler
