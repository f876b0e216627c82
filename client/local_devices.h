// Lists the devices of this machine, as a runner on it would announce them.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

// Returns what `kiln runner --device DEVICE --list` prints (DEVICE: "cpu", "cuda", "null"): runners
// with their keys, in the order of their indices. Starts a child process of this program.
StatusOr<v1::ListReply> LocalDevices(const std::string& device);

// Returns the key of the device that the user names by name, UUID or index.
StatusOr<std::string> ChooseLocalDevice(const std::string& wanted, const std::string& kind,
                                        const v1::ListReply& there);

}  // namespace kiln::client
