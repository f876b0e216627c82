// One build from a file, in this process, to reproduce a trial by hand or under a debugger.
#pragma once

#include <string>

#include "base/status.h"

namespace kiln::builder {

// Builds the BuildRequest at `path` (base/file/message_file.h) and prints the reply's text form,
// without the binary, on stdout. If `output_path` is not empty, the binary goes there, and a
// candidate that fails is an error. The request's limits are not applied.
Status BuildOnce(const std::string& path, const std::string& output_path);

}  // namespace kiln::builder
