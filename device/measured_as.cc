#include "device/measured_as.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace kiln::device {
namespace {

using Launches = MeasuredAs::Launches;
using Caches = MeasuredAs::Caches;
using Clocks = MeasuredAs::Clocks;

template <typename Value>
using Word = std::pair<Value, std::string_view>;

constexpr Word<Launches> kLaunches[] = {
    {Launches::kCall, "call"}, {Launches::kGraph, "graph"}, {Launches::kStream, "stream"}};
constexpr Word<Caches> kCaches[] = {{Caches::kWarm, "warm"}, {Caches::kCold, "cold"}};
constexpr Word<Clocks> kClocks[] = {{Clocks::kFree, "free"}, {Clocks::kFixed, "fixed"}};

template <typename Value, size_t n>
std::string_view WordOf(const Word<Value> (&words)[n], Value value) {
  return std::ranges::find(words, value, &Word<Value>::first)->second;
}

template <typename Value, size_t n>
std::optional<Value> ValueOf(const Word<Value> (&words)[n], std::string_view word) {
  const auto* const found = std::ranges::find(words, word, &Word<Value>::second);
  return found == std::end(words) ? std::nullopt : std::optional(found->first);
}

std::vector<std::string_view> PartsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find('/');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string PrintMeasuredAs(const MeasuredAs& way) {
  return fmt::format("{}/{}/{}", WordOf(kLaunches, way.launches), WordOf(kCaches, way.caches),
                     WordOf(kClocks, way.clocks));
}

StatusOr<std::optional<MeasuredAs>> ParseMeasuredAs(std::string_view text) {
  if (text.empty()) return std::optional<MeasuredAs>();
  const std::vector<std::string_view> parts = PartsOf(text);
  if (parts.size() == 3) {
    const auto launches = ValueOf(kLaunches, parts[0]);
    const auto caches = ValueOf(kCaches, parts[1]);
    const auto clocks = ValueOf(kClocks, parts[2]);
    if (launches && caches && clocks) return std::optional(MeasuredAs{*launches, *caches, *clocks});
  }
  return InvalidArgument(
      "'{}' is no way of measuring, expected call, graph or stream, then warm or cold, then free "
      "or fixed, such as graph/warm/free",
      text);
}

Status CheckDeployment(std::string_view as_deployed) {
  if (as_deployed.empty() || as_deployed == "graph" || as_deployed == "stream") return OkStatus();
  return InvalidArgument("a program is deployed as '{}', expected graph or stream", as_deployed);
}

bool IsAsDeployed(std::string_view measured_as, std::string_view as_deployed) {
  return as_deployed.empty() ||
         (measured_as.starts_with(as_deployed) && measured_as.substr(as_deployed.size(), 1) == "/");
}

}  // namespace kiln::device
