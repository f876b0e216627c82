// How many files and sockets this process can have open.
#pragma once

#include <cstdint>

namespace kiln {

// Raises the limit as far as the system lets this user. Children inherit it.
void RaiseDescriptorLimit();

// The limit now; at most a million where there is none.
int64_t DescriptorLimit();

}  // namespace kiln
