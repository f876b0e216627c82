#include "search/templates/curve_features.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "search/templates/loop_touches.h"

namespace kiln::search {
namespace {

constexpr int kSamples = 20;
constexpr double kTolerance = 1e-6;  // tolerance of the place where a step begins

// Returns "A_local" for "A_local_1".
std::string_view WithoutNumber(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool is_numbered = end != name.npos && end + 1 < name.size() && name[end] == '_';
  return is_numbered ? name.substr(0, end) : name;
}

std::string_view WithoutSuffix(std::string_view name, std::string_view suffix) {
  for (const std::string_view text : {name, WithoutNumber(name)}) {
    if (text.size() > suffix.size() && text.ends_with(suffix))
      return text.substr(0, text.size() - suffix.size());
  }
  return name;
}

// Returns the tensor that an access belongs to. A's copy in shared memory is A_shared, and the copy
// of that in registers is A_shared_local.
std::string TensorOf(const ir::Buffer& buffer) {
  std::string_view name = buffer.name;
  const bool is_copy = buffer.scope == ir::Scope::kShared || buffer.scope == ir::Scope::kCluster ||
                       buffer.scope == ir::Scope::kLocal;
  while (is_copy) {
    const std::string_view shorter = WithoutSuffix(WithoutSuffix(name, "_shared"), "_local");
    if (shorter == name) break;
    name = shorter;
  }
  return std::string(name);
}

// Returns the last access of each tensor in the deepest loops.
std::set<std::string> InnermostAccesses(const ir::Program& program, const LoopTouches& found) {
  int depth = 0;
  for (const TouchedLoop& loop : found.loops) depth = std::max(depth, loop.depth);
  struct Last {
    std::string name;
    int order = -1;
  };
  std::map<std::string, Last> last;  // key: tensor
  for (const TouchedLoop& loop : found.loops) {
    if (loop.depth != depth) continue;
    for (const auto& [name, touch] : loop.touches) {
      const BufferAccess& access = found.accesses.at(name);
      Last& kept = last[TensorOf(program.buffers[static_cast<size_t>(access.buffer)])];
      if (access.order > kept.order) kept = {name, access.order};
    }
  }
  std::set<std::string> names;
  for (const auto& [tensor, access] : last) names.insert(access.name);
  return names;
}

// The sorted lists of one access.
struct Curves {
  std::vector<double> count = {0}, reuse = {0}, topdown = {0};
};

Curves CurvesOf(const std::string& access, const std::vector<TouchedLoop>& loops) {
  Curves curves;
  for (const TouchedLoop& loop : loops) {
    const auto touch = loop.touches.find(access);
    if (touch == loop.touches.end()) continue;
    curves.count.push_back(std::log2(touch->second.count));
    curves.reuse.push_back(std::log2(touch->second.reuse));
    curves.topdown.push_back(std::log2(loop.topdown));
  }
  std::ranges::sort(curves.count);
  std::ranges::sort(curves.reuse);
  std::ranges::sort(curves.topdown);
  return curves;
}

// Both lists have the same length and are ascending. `x` begins with 0.
void AddSamples(const std::vector<double>& x, const std::vector<double>& y,
                std::vector<float>& row) {
  for (int at = 0; at < kSamples; ++at) {
    const auto after = std::ranges::lower_bound(x, at + kTolerance);
    const auto step = static_cast<size_t>(after - x.begin() - 1);
    row.push_back(static_cast<float>(y[step]));
    row.push_back(static_cast<float>(at - x[step]));
  }
}

}  // namespace

std::vector<float> CurveFeatures(const ir::Program& program) {
  const LoopTouches found = FindTouches(program);
  std::vector<float> row;
  for (const std::string& name : InnermostAccesses(program, found)) {
    const Curves curves = CurvesOf(name, found.loops);
    AddSamples(curves.count, curves.reuse, row);
    AddSamples(curves.reuse, curves.count, row);
    AddSamples(curves.count, curves.topdown, row);
    AddSamples(curves.topdown, curves.count, row);
  }
  return row;
}

}  // namespace kiln::search
