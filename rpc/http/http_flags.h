// The flag of a daemon for its pages.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace kiln {

struct HttpFlags {
  // A port, or "off".
  std::string http_port = "0";
};

// Adds --http-port.
void AddHttpFlag(CLI::App& app, HttpFlags& flags);

// Returns the port; none: the daemon serves no pages.
StatusOr<std::optional<int>> ParseHttpPort(const std::string& text);

}  // namespace kiln
