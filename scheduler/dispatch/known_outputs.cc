#include "scheduler/dispatch/known_outputs.h"

#include <cstring>
#include <memory>
#include <utility>

#include "compiler/dag/evaluate.h"
#include "compiler/dag/input_facts.h"
#include "compiler/dag/sample_outputs.h"
#include "rpc/random_fill.h"

namespace kiln::scheduler {
namespace {

// The interpreter takes about a tenth of a second for the wanted operations, and a second for the
// most.
constexpr double kWantedFlops = 3e5;
constexpr double kMaxFlops = 3e6;
constexpr int64_t kGridElements = 64;

// An input that makes its elements when they are read.
class RandomElements : public dag::ElementSource {
 public:
  static StatusOr<std::unique_ptr<RandomElements>> Make(const dag::InputFacts& facts, int ordinal,
                                                        uint64_t seed) {
    RandomInput input{.name = facts.name, .shape = facts.shape, .index_limit = facts.index_limit};
    KILN_ASSIGN_OR_RETURN(input.dtype, runtime::ParseDType(ir::TypeName(facts.type)));
    if (facts.range.has_value())
      input.range = ValueRange{facts.range->low, facts.range->high, facts.range->run};
    return std::unique_ptr<RandomElements>(new RandomElements(facts.type, input, ordinal, seed));
  }

  ir::Type type() const override { return type_; }
  const std::vector<int64_t>& shape() const override { return input_.shape; }
  ir::Value At(int64_t flat) const override {
    FillRandom(one_.mutable_bytes(), input_.dtype, input_.index_limit, key_, input_.range, flat);
    return one_.Get(0);
  }

 private:
  RandomElements(ir::Type type, RandomInput input, int ordinal, uint64_t seed)
      : type_(type),
        input_(std::move(input)),
        key_(RandomKey(input_, ordinal, seed)),
        one_(type, {1}) {}

  const ir::Type type_;
  const RandomInput input_;
  const std::string key_;
  mutable ir::NDArray one_;
};

void Add(const dag::OutputGrid& grid, const std::vector<int64_t>& shape, const ir::NDArray& values,
         v1::KnownElements& known) {
  known.set_output(static_cast<uint32_t>(grid.output));
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const std::vector<int64_t> at = values.Unflatten(i);
    int64_t place = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      place = place * shape[d] + grid.offset[d] + grid.stride[d] * at[d];
    }
    known.add_element(place);
    known.add_value(values.GetDouble(i));
  }
}

}  // namespace

StatusOr<std::vector<v1::KnownElements>> KnownOutputs(const dag::DagText& text, uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(
      const dag::SampledDag sampled,
      dag::SampleOutputs(
          text, {.grid_elements = kGridElements, .most_flops = kWantedFlops, .seed = seed}));
  const dag::Dag& some = *sampled.text.dag;
  if (some.flop_count() > kMaxFlops) {
    return OutOfRange("{} elements take {:.3g} operations, expected at most {:.3g}",
                      sampled.elements(), some.flop_count(), kMaxFlops);
  }
  std::vector<std::unique_ptr<RandomElements>> inputs;
  std::vector<const dag::ElementSource*> sources;
  for (const dag::InputFacts& facts : dag::InputsOf(sampled.text)) {
    KILN_ASSIGN_OR_RETURN(inputs.emplace_back(),
                          RandomElements::Make(facts, static_cast<int>(inputs.size()), seed));
    sources.push_back(inputs.back().get());
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> values, dag::EvaluateOn(some, sources));
  std::vector<std::vector<int64_t>> shapes;  // shapes of the outputs
  for (const dag::Tensor argument : text.dag->arguments()) {
    if (text.dag->op(argument.op).is_placeholder()) continue;
    shapes.push_back(text.dag->shape(argument));
  }
  std::vector<v1::KnownElements> known(values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const dag::OutputGrid& grid = sampled.grids[k];
    Add(grid, shapes[static_cast<size_t>(grid.output)], values[k], known[k]);
  }
  return known;
}

}  // namespace kiln::scheduler
