// Finds the runners that a user means by the name of a device. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "proto/tracker.pb.h"

namespace kiln {

// Returns the key that `wanted` means, among the keys of runners that serve `kind` ("cuda",
// "llvm"). `wanted` is a key itself, "NVIDIA H200" or "llvm/x86-64-v4", the beginning of a UUID, or
// a part of one model's name, "h200". Case does not matter. InvalidArgument lists the devices that
// are there, if `wanted` fits none or several.
StatusOr<std::string> ChooseDevice(std::string_view wanted, std::string_view kind,
                                   const v1::ListReply& there);

bool HasRunnerFor(std::string_view kind, const v1::ListReply& there);

}  // namespace kiln
