#include "rpc/http/http_routes.h"

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// Returns whether the path is one of the pattern.
bool Matches(std::string_view pattern, std::string_view path, std::vector<std::string>& stars) {
  stars.clear();
  while (true) {
    const size_t pattern_end = pattern.find('/'), path_end = path.find('/');
    const std::string_view wanted = pattern.substr(0, pattern_end);
    const std::string_view segment = path.substr(0, path_end);
    if (wanted == "*" && !segment.empty()) {
      stars.emplace_back(segment);
    } else if (wanted != segment) {
      return false;
    }
    const bool last = pattern_end == std::string_view::npos;
    if (last != (path_end == std::string_view::npos)) return false;
    if (last) return true;
    pattern.remove_prefix(pattern_end + 1);
    path.remove_prefix(path_end + 1);
  }
}

}  // namespace

void HttpRoutes::Add(HttpRoute route) {
  KILN_CHECK(route.pattern.starts_with('/'), "the pattern {} has no slash in front", route.pattern);
  const bool is_new = std::ranges::none_of(
      routes_, [&](const HttpRoute& other) { return other.pattern == route.pattern; });
  KILN_CHECK(is_new, "the pattern {} is there already", route.pattern);
  routes_.push_back(std::move(route));
}

const HttpRoute* HttpRoutes::Find(std::string_view path, std::vector<std::string>& stars) const {
  stars.clear();
  for (const HttpRoute& route : routes_) {
    if (route.pattern == path && route.pattern.find('*') == std::string::npos) return &route;
  }
  for (const HttpRoute& route : routes_) {
    if (Matches(route.pattern, path, stars)) return &route;
  }
  stars.clear();
  return nullptr;
}

}  // namespace kiln
