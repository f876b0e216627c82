#include "client/jobs/operator_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/text/closest_names.h"
#include "compiler/dag/ops/registry.h"
#include "frontend/zoo/zoo.h"

namespace kiln::client {
namespace {

constexpr std::array<std::string_view, 6> kLayouts = {"nhwc", "nchw",  "nwc",
                                                      "ncw",  "ndhwc", "ncdhw"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// Returns the layout of "conv2d_nhwc", "nhwc"; "" for an operator without a layout.
std::string_view LayoutOf(std::string_view op) {
  const size_t underline = op.rfind('_');
  if (underline == std::string_view::npos) return {};
  const std::string_view suffix = op.substr(underline + 1);
  return std::ranges::find(kLayouts, suffix) == kLayouts.end() ? std::string_view() : suffix;
}

// Returns the layouts of all operators that differ from this one only in the layout, itself
// included.
std::vector<std::string_view> OtherLayoutsOf(std::string_view op) {
  const std::string_view stem = op.substr(0, op.size() - LayoutOf(op).size());
  std::vector<std::string_view> layouts;
  for (const dag::OpInfo& other : dag::AllOps()) {
    const std::string_view name = other.name, layout = LayoutOf(name);
    if (!layout.empty() && name.substr(0, name.size() - layout.size()) == stem)
      layouts.push_back(layout);
  }
  return layouts;
}

std::vector<std::string> NearNetworks(std::string_view name) {
  std::vector<std::string> names;
  for (const frontend::ZooNetwork& network : frontend::ZooNetworks()) names.push_back(network.name);
  std::string plain = Lower(name);
  std::ranges::replace(plain, '_', '-');
  std::vector<std::string> near = ClosestNames(plain, names);
  if (std::ranges::find(near, plain) != near.end()) near = {plain};
  for (std::string& network : near) network = "network:" + network;
  return near;
}

std::string Guess(const std::vector<std::string>& near) {
  return near.empty() ? "" : fmt::format(", did you mean {}?", fmt::join(near, " or "));
}

Status WrongLayout(const dag::OpInfo& op, std::string_view layout) {
  const std::vector<std::string_view> there = OtherLayoutsOf(op.name);
  if (there.empty())
    return InvalidArgument("--layout {}: {} has no layouts, leave it out", Upper(layout), op.name);
  std::vector<std::string> names;
  for (const std::string_view one : there) names.push_back(Upper(one));
  return InvalidArgument("--layout {}: {} has no such layout, expected one of: {}", Upper(layout),
                         op.name, fmt::join(names, ", "));
}

}  // namespace

StatusOr<std::string> OperatorOf(std::string_view name, std::string_view layout) {
  const StatusOr<const dag::OpInfo*> found = dag::FindOp(name);
  if (!found.ok()) {
    const std::string guess = DidYouMeanOperator(name);
    return NotFound(
        "unknown operator '{}'{} `kiln ops` lists the operators, docs/zoo.md the networks", name,
        guess.empty() ? ";" : guess);
  }
  const dag::OpInfo& op = **found;
  if (layout.empty()) return std::string(name);
  const std::string_view own = LayoutOf(op.name);
  if (own == layout) return op.name;
  const std::string other =
      own.empty() ? "" : op.name.substr(0, op.name.size() - own.size()) + std::string(layout);
  if (other.empty() || !dag::FindOp(other).ok()) return WrongLayout(op, layout);
  if (LayoutOf(name).empty()) return other;
  return InvalidArgument("--layout {}: {} is {}; the operator of that layout is {}", Upper(layout),
                         name, Upper(own), other);
}

std::string DidYouMeanOperator(std::string_view name) {
  std::vector<std::string> names;
  for (const dag::OpInfo& op : dag::AllOps()) names.push_back(op.name);
  std::vector<std::string> near = NearNetworks(name);
  const bool is_network = near.size() == 1 && near[0].ends_with(Lower(name));
  if (!is_network) {
    for (std::string& op : ClosestNames(Lower(name), names)) near.push_back(std::move(op));
  }
  return Guess(near);
}

std::string DidYouMeanNetwork(std::string_view name) { return Guess(NearNetworks(name)); }

}  // namespace kiln::client
