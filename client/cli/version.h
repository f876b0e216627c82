// The version of this Kiln and of its libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kiln::client {

// Returns names and versions: "version" first, then the libraries on which search, compilation and
// storage depend. The commit is included if the build was told one. Looking for NVRTC may load it.
std::vector<std::pair<std::string, std::string>> Versions();

// Returns a line: "kiln 1 (1f0c2a34), LLVM 19.1.4, NVRTC not found, XGBoost 1.7.4, SQLite 3.40.1".
std::string VersionText();

}  // namespace kiln::client
