// Cost models of a scheduler.
#pragma once

#include <memory>

#include "client/client.h"
#include "client/models.h"

namespace kiln::client {

// A file that is tested or asked is first kept by the scheduler, under its ContentName. Thread-safe;
// `client` may go before it.
std::unique_ptr<Models> ModelsOf(const SchedulerClient& client);

}  // namespace kiln::client
