// Cost models that a scheduler keeps.
#pragma once

#include <memory>

#include "client/client.h"
#include "client/models.h"

namespace kiln::client {

// Before a file is tested or used for predictions, it is kept by the scheduler under its
// ContentName. Thread-safe; `client` may be destroyed before it.
std::unique_ptr<Models> ModelsOf(const SchedulerClient& client);

}  // namespace kiln::client
