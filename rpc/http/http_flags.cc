#include "rpc/http/http_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>

namespace kiln {

StatusOr<std::optional<int>> ParseHttpPort(const std::string& text) {
  if (text == "off") return std::optional<int>();
  int port = -1;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, port);
  if (parsed.ec == std::errc() && parsed.ptr == end && port >= 0 && port <= 65535) {
    return std::optional<int>(port);
  }
  return InvalidArgument("found '{}', expected a port from 0 to 65535, or off", text);
}

void AddHttpFlag(CLI::App& app, HttpFlags& flags) {
  app.add_option("--http-port", flags.http_port,
                 "port of the pages /metrics and /healthz, on the host of --listen; 0 = any free "
                 "one, off = none")
      ->check([](const std::string& text) {
        return std::string(Message(ParseHttpPort(text).status()));
      })
      ->type_name("PORT")
      ->capture_default_str();
}

}  // namespace kiln
