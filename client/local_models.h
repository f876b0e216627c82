// Cost models of a database file, without a scheduler. A scheduler may use the file meanwhile.
#pragma once

#include <memory>
#include <string>

#include "client/models.h"

namespace kiln::client {

// The file must exist unless `write`, which makes it. `write` allows Train with a name, Put and
// Delete.
StatusOr<std::unique_ptr<Models>> OpenLocalModels(const std::string& path, bool write);

}  // namespace kiln::client
