// Cost models over a database file, without a scheduler; one may use the file meanwhile.
#pragma once

#include <memory>
#include <string>

#include "client/models.h"

namespace kiln::client {

// The file must be there, unless `write`, which makes it: Train with a name, Put or Delete will be
// called.
StatusOr<std::unique_ptr<Models>> OpenLocalModels(const std::string& path, bool write);

}  // namespace kiln::client
