// The limit of files and sockets that this process can have open.
#pragma once

#include <cstdint>

namespace kiln {

// Raises the limit as far as the system lets this user. Children inherit it.
void RaiseDescriptorLimit();

// Returns the present limit; at most a million if there is no limit.
int64_t DescriptorLimit();

}  // namespace kiln
