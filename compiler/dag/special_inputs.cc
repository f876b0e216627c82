#include "compiler/dag/special_inputs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/numbers/rng.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/online_variant.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array<SpecialValue, 6> kValues = {{
    {"nan", std::numeric_limits<double>::quiet_NaN()},
    {"inf", kInfinity},
    {"-inf", -kInfinity},
    {"-0", -0.0},
    {"denormal", 0x1.8p-127},
    {"-denormal", -0x1p-135},
}};

// A rounding may turn smaller numbers into zero.
constexpr double kMinKept = 0x1p-140;

bool IsExact(ir::Op op) {
  switch (op) {
    case ir::Op::kAdd:
    case ir::Op::kSub:
    case ir::Op::kMul:
    case ir::Op::kDiv:
    case ir::Op::kCall:
      return false;
    default:
      return true;
  }
}

bool IsFloat32Denormal(double value) {
  return value != 0 && std::abs(value) < std::numeric_limits<float>::min();
}

}  // namespace

std::span<const SpecialValue> SpecialValues() { return kValues; }

std::vector<SpecialPlace> SpecialPlaces(const Dag& dag, uint64_t seed) {
  std::vector<SpecialPlace> places;
  size_t input = 0;
  for (const Tensor& t : dag.arguments()) {
    const Operator& op = dag.op(t.op);
    if (!op.is_placeholder()) continue;
    const size_t number = input++;
    if (!op.type().is_float()) continue;
    int64_t elements = 1;
    for (const int64_t extent : op.shape()) elements *= extent;
    if (elements == 0) continue;
    Rng rng(SplitSeed(seed, number));
    places.push_back({number, 0, "first"});
    places.push_back({number, UniformIn(rng, 0, elements - 1), "middle"});
    places.push_back({number, elements - 1, "last"});
  }
  return places;
}

std::string Describe(const SpecialValue& value, const SpecialPlace& place) {
  return fmt::format("{} at the {} place of input {}, element {}", value.name, place.name,
                     place.input, place.element);
}

std::vector<ir::NDArray> WithSpecial(std::span<const ir::NDArray> inputs, const SpecialPlace& place,
                                     const SpecialValue& value) {
  std::vector<ir::NDArray> changed(inputs.begin(), inputs.end());
  changed[place.input].SetDouble(place.element, value.value);
  return changed;
}

StatusOr<std::vector<SpecialCase>> SpecialCases(const Dag& dag, uint64_t seed) {
  const std::vector<ir::NDArray> usual = RandomInputs(dag, seed, ir::RandomKind::kSmallIntegers);
  std::vector<SpecialCase> cases;
  for (const SpecialPlace& place : SpecialPlaces(dag, seed)) {
    for (const SpecialValue& value : SpecialValues()) {
      SpecialCase one{Describe(value, place), WithSpecial(usual, place, value), {}};
      auto outputs = Evaluate(dag, one.inputs, {.wide_accumulation = true});
      if (!outputs.ok()) return Annotate(outputs.status(), one.name);
      one.outputs = *std::move(outputs);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

SpecialJudge::SpecialJudge(const Dag& dag) {
  if (auto online = OnlineVariant(dag); online.ok()) online_ = *std::move(online);
  for (int i = 0; i < dag.size(); ++i) {
    const Operator& op = dag.op(i);
    if (op.is_placeholder()) continue;
    const bool is_sum = op.combiner() == Combiner::kSum || op.combiner() == Combiner::kProd ||
                        op.combiner() == Combiner::kCustom;
    if (is_sum) keeps_signs_ = keeps_denormals_ = false;
    for (const ir::Expr body : op.bodies()) {
      ir::Visit(body, [&](ir::Expr node) {
        keeps_signs_ &= !node->type.is_float() || IsExact(node->op);
      });
    }
  }
}

StatusOr<int64_t> SpecialJudge::Judge(std::span<const ir::NDArray> found, const SpecialCase& one,
                                      bool is_online) const {
  const Status same = Compare(found, one.outputs);
  if (same.ok()) return 0;
  if (!is_online || online_ == nullptr) return same;
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> variant,
                        Evaluate(*online_, one.inputs, {.wide_accumulation = true}));
  std::vector<ir::NDArray> expected = one.outputs;
  int64_t taken = 0;
  for (size_t i = 0; i < found.size(); ++i)
    taken += TakeVariantOfNaN(found[i], variant[i], expected[i]);
  KILN_RETURN_IF_ERROR(Compare(found, expected));
  return taken;
}

Status SpecialJudge::Compare(std::span<const ir::NDArray> found,
                             std::span<const ir::NDArray> expected) const {
  KILN_CHECK(found.size() == expected.size(), "{} outputs, expected {}", found.size(),
             expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string name = fmt::format("output {}", i);
    KILN_RETURN_IF_ERROR(
        ir::Compare(found[i], expected[i], ir::DefaultTolerance(found[i].type()), name));
    KILN_RETURN_IF_ERROR(Annotate(CompareZeros(found[i], expected[i]), name));
  }
  return OkStatus();
}

Status SpecialJudge::CompareZeros(const ir::NDArray& found, const ir::NDArray& expected) const {
  if (!found.type().is_float()) return OkStatus();
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    const double got = found.GetDouble(i), want = expected.GetDouble(i);
    const bool is_other_zero =
        keeps_signs_ && want == 0 && got == 0 && std::signbit(want) != std::signbit(got);
    const bool is_flushed =
        keeps_denormals_ && got == 0 && IsFloat32Denormal(want) && std::abs(want) >= kMinKept;
    if (is_other_zero || is_flushed) return Internal("element {} is {}, expected {}", i, got, want);
  }
  return OkStatus();
}

}  // namespace kiln::dag
