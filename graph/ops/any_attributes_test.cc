// Attributes and shapes come from files that anybody may have written. Whatever they are, an
// operator must give sound types, or refuse.
#include <fmt/format.h>

#include <random>
#include <set>

#include "base/status_testing.h"
#include "graph/graph.h"
#include "graph/op_cases_testing.h"

namespace kiln::graph {
namespace {

using OptionalTypes = std::vector<std::optional<TensorType>>;

// Changes a few things in a sound call.
class Mutation {
 public:
  explicit Mutation(uint64_t seed) : rng_(seed) {}

  void Apply(const OpDef& op, Attributes& attributes, OptionalTypes& inputs) {
    do {
      if (!attributes.empty() && Below(2) == 0) {
        auto it = attributes.begin();
        std::advance(it, Below(attributes.size()));
        Change(it->second);
      } else {
        ChangeInputs(op, inputs);
      }
    } while (Below(3) == 0);
  }

 private:
  static constexpr int64_t kExtremes[] = {
      INT64_MIN,        INT64_MIN + 1,          -(int64_t{1} << 40), INT32_MIN,        INT32_MAX,
      int64_t{1} << 31, (int64_t{1} << 31) + 1, int64_t{1} << 40,    int64_t{1} << 62, INT64_MAX};
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 1 << 20, int64_t{1} << 33};
  static constexpr ir::Type kTypes[] = {ir::kFloat32,  ir::kFloat64, ir::kFloat16,
                                        ir::kBFloat16, ir::kInt64,   ir::kInt32,
                                        ir::kInt8,     ir::kBool,    ir::kFloat8E4M3};

  uint64_t Below(uint64_t bound) { return rng_() % bound; }
  template <typename T, size_t n>
  T Of(const T (&choices)[n]) {
    return choices[Below(n)];
  }
  int64_t Number() { return Below(2) == 0 ? Of(kExtremes) : static_cast<int64_t>(Below(9)) - 3; }

  void Change(std::vector<int64_t>& values) {
    if (values.empty() || Below(5) == 0) {
      values.insert(values.begin() + static_cast<std::ptrdiff_t>(Below(values.size() + 1)),
                    Number());
    } else if (Below(5) == 0) {
      values.pop_back();
    } else {
      values[Below(values.size())] = Number();
    }
  }
  void Change(int64_t& value) { value = Number(); }
  void Change(double& value) {
    static constexpr double kValues[] = {0, -1, 0.5, 1e300, -1e-300};
    value = Below(4) == 0 ? std::numeric_limits<double>::quiet_NaN() : Of(kValues);
  }
  void Change(std::string& value) {
    static const std::string kNames[] = {"float64", "bool", "int8", "add", "wrap", "edge", ""};
    value = Of(kNames);
  }
  void Change(std::vector<double>& values) { values.push_back(0.5); }
  void Change(Attribute& attribute) {
    std::visit([&](auto& value) { Change(value); }, attribute);
  }

  void ChangeInputs(const OpDef& op, OptionalTypes& inputs) {
    const size_t i = Below(inputs.size());
    const bool is_optional = static_cast<int>(i) >= op.min_inputs;
    if (is_optional && Below(3) == 0) inputs[i].reset();
    if (!inputs[i]) return;
    TensorType& type = *inputs[i];
    if (Below(3) == 0) {
      type.type = Of(kTypes);
    } else if (type.shape.empty() || Below(4) == 0) {
      type.shape.push_back(Of(kExtents));
    } else if (Below(4) == 0) {
      type.shape.pop_back();
    } else {
      type.shape[Below(type.shape.size())] = Of(kExtents);
    }
    if (!CheckTensorType(type).ok()) type.shape.clear();
  }

  std::mt19937_64 rng_;
};

std::string CallText(const OpDef& op, const Attributes& attributes, const OptionalTypes& inputs) {
  std::string text = op.name + "(";
  for (const auto& input : inputs) text += (input ? TypeText(*input) : std::string("_")) + ", ";
  text += ") {";
  for (const auto& [name, value] : attributes) text += name + ": " + AttributeText(value) + ", ";
  return text + "}";
}

OptionalTypes InputTypes(const Graph& graph) {
  OptionalTypes types;
  for (ValueId id : graph.node(0).inputs)
    types.push_back(id == kAbsent ? std::nullopt : std::optional(graph.value(id).type));
  return types;
}

TEST(AnyAttributesTest, GiveSoundTypesOrAreRefused) {
  for (const OpCase& c : SmallOpCases()) {
    const Graph graph = c.Build();
    const Node& node = graph.node(0);
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      Attributes attributes = node.attributes;
      OptionalTypes inputs = InputTypes(graph);
      Mutation(seed).Apply(*node.op, attributes, inputs);
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, CallText(*node.op, attributes, inputs)));
      const StatusOr<std::vector<TensorType>> types = InferTypes(*node.op, attributes, inputs);
      if (!types.ok()) {
        EXPECT_FALSE(types.status().message().empty());
        continue;
      }
      for (const TensorType& type : *types) EXPECT_OK(CheckTensorType(type));
    }
  }
}

TEST(OpCasesTest, EveryOperatorHasOne) {
  std::set<std::string> cases;
  for (const OpCase& c : SmallOpCases()) cases.insert(c.call.substr(0, c.call.find('(')));
  for (const OpDef& op : AllOps()) EXPECT_TRUE(cases.contains(op.name)) << op.name;
}

}  // namespace
}  // namespace kiln::graph
