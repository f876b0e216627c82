// The name of the user of this process, for what he asks of a scheduler.
#pragma once

#include <string>

namespace kiln::client {

// Returns $USER, else the name of the user's account, else "user 1000". Thread-safe while nobody
// changes the environment.
std::string UserName();

}  // namespace kiln::client
