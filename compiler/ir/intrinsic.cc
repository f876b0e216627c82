#include "compiler/ir/intrinsic.h"

#include <array>
#include <string>
#include <utility>

namespace kiln::ir {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 16> kIntrinsics = {{
    {"exp", 1},
    {"log", 1},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"tanh", 1},
    {"sigmoid", 1},
    {"erf", 1},
    {"pow", 2},
    {"abs", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"sin", 1},
    {"cos", 1},
    {"exp2", 1},
    {"log2", 1},
}};

}  // namespace

std::string_view IntrinsicName(Intrinsic intrinsic) {
  return kIntrinsics[static_cast<size_t>(intrinsic)].first;
}

int IntrinsicArity(Intrinsic intrinsic) {
  return kIntrinsics[static_cast<size_t>(intrinsic)].second;
}

StatusOr<Intrinsic> ParseIntrinsic(std::string_view name) {
  for (size_t i = 0; i < kIntrinsics.size(); ++i) {
    if (kIntrinsics[i].first == name) return static_cast<Intrinsic>(i);
  }
  std::string names;
  for (const auto& [known, arity] : kIntrinsics)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  return InvalidArgument("unknown function '{}', expected one of {}", name, names);
}

}  // namespace kiln::ir
