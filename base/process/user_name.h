// The user of this process.
#pragma once

#include <string>

namespace kiln {

// Returns the variable USER, or the name of the effective user where it is not set, as in
// containers and services; "user 1000" for a number without a name.
std::string UserName();

}  // namespace kiln
