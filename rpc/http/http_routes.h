// The pages of a port, by their paths.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/keys/role.h"
#include "rpc/http/http_message.h"

namespace kiln {

struct HttpRoute {
  // Segments between slashes; "*" stands for any one segment that is not empty.
  std::string pattern;
  // The least role of a caller. None: everybody may see the page, strangers included.
  std::optional<Role> needed;
  std::variant<HttpHandler, EventSource> answer;
};

// A value. Thread-safe once filled.
class HttpRoutes {
 public:
  // KILN_CHECK fails for a pattern that does not begin with a slash, or is there already.
  void Add(HttpRoute route);

  // Returns the route of the path, and puts the segments of its stars into `stars`; null if there
  // is none. A route without stars goes before one with stars, an earlier one before a later one.
  const HttpRoute* Find(std::string_view path, std::vector<std::string>& stars) const;

 private:
  std::vector<HttpRoute> routes_;
};

}  // namespace kiln
