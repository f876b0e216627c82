// Places of errors in files of the user.
#pragma once

#include <string>

#include "base/status.h"

namespace kiln::client {

// Changes an error "line 3, column 14: expected ..." of the file's text into InvalidArgument
// "my_op.te:3:14: expected ...", which editors can jump to. Other errors get the path before them.
Status AtPlace(const std::string& path, const Status& status);

}  // namespace kiln::client
