// Which Kiln this is, and with which libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kiln::client {

// "version" first, then the libraries that decide what is found, compiled and kept: name and
// version. A commit where the build was told one; NVRTC is looked for, which may load it.
std::vector<std::pair<std::string, std::string>> Versions();

// A line: "kiln 1 (1f0c2a34), LLVM 19.1.4, NVRTC not found, XGBoost 1.7.4, SQLite 3.40.1".
std::string VersionText();

}  // namespace kiln::client
