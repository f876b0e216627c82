#include "compiler/lower/body.h"

namespace kiln::lower {
namespace {

class BodyLowering {
 public:
  BodyLowering(const schedule::State& state, arith::Simplifier& simplifier, ReadFn read)
      : state_(state), simplifier_(simplifier), read_(read) {}

  ir::Expr Lower(int s, int output, const std::vector<arith::Linear>& axis_values) {
    const dag::OpNode& node = state_.dag()->node(s);
    const auto lower_load = [&](ir::Expr load) { return LowerLoad(node, load, axis_values); };
    const arith::Simplifier::LoadFn load_fn = lower_load;
    return simplifier_.Simplify(node.op->body(output), &axis_values, &load_fn);
  }

 private:
  ir::Expr LowerLoad(const dag::OpNode& reader, ir::Expr load,
                     const std::vector<arith::Linear>& axis_values) {
    const auto nested = [&](ir::Expr inner) { return LowerLoad(reader, inner, axis_values); };
    const arith::Simplifier::LoadFn load_fn = nested;
    std::vector<arith::Linear> indices;
    indices.reserve(load->num_args);
    for (ir::Expr index : load->args())
      indices.push_back(simplifier_.ToLinear(index, &axis_values, &load_fn));
    const dag::Tensor producer = reader.inputs[load->id];
    if (state_.attach(producer.op).kind == schedule::Attach::kInlined) {
      return Lower(producer.op, producer.output, indices);
    }
    return read_(producer.op, producer.output, indices, load->type);
  }

  const schedule::State& state_;
  arith::Simplifier& simplifier_;
  ReadFn read_;
};

}  // namespace

ir::Expr LowerBody(const schedule::State& state, int s, int output,
                   const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                   ReadFn read) {
  return BodyLowering(state, simplifier, read).Lower(s, output, axis_values);
}

}  // namespace kiln::lower
