#include "compiler/lower/body.h"

namespace kiln::lower {
namespace {

class BodyLowering {
 public:
  // wanted: stages whose reads the body is visited for; null: for its value.
  BodyLowering(const schedule::State& state, arith::Simplifier& simplifier,
               const std::vector<bool>* wanted, ReadFn read)
      : state_(state), simplifier_(simplifier), wanted_(wanted), read_(read) {}

  ir::Expr Lower(const dag::Tensor& tensor, const std::vector<arith::Linear>& axis_values,
                 bool in_index = false) {
    const dag::OpNode& node = state_.dag()->node(tensor.op);
    const auto lower_load = [&](ir::Expr load) {
      return LowerLoad(node, load, axis_values, in_index);
    };
    const arith::Simplifier::LoadFn load_fn = lower_load;
    return simplifier_.Simplify(node.op->body(tensor.output), &axis_values, &load_fn);
  }

 private:
  ir::Expr LowerLoad(const dag::OpNode& reader, ir::Expr load,
                     const std::vector<arith::Linear>& axis_values, bool in_index) {
    const dag::Tensor producer = reader.inputs[load->id];
    const bool is_inlined = state_.attach(producer.op).kind == schedule::Attach::kInlined;
    if (is_inlined && !in_index && !IsWanted(producer.op, load->type))
      return UnknownValue(producer.op, load->type);
    const auto nested = [&](ir::Expr inner) { return LowerLoad(reader, inner, axis_values, true); };
    const arith::Simplifier::LoadFn load_fn = nested;
    std::vector<arith::Linear> indices;
    indices.reserve(load->num_args);
    for (ir::Expr index : load->args())
      indices.push_back(simplifier_.ToLinear(index, &axis_values, &load_fn));
    if (is_inlined) return Lower(producer, indices, in_index);
    return read_(producer.op, producer.output, indices, load->type);
  }

  // Integers decide which side of a condition is visited.
  bool IsWanted(int s, ir::Type type) const {
    return wanted_ == nullptr || (*wanted_)[s] || !type.is_float();
  }

  // Each is another: nothing follows from comparing two.
  ir::Expr UnknownValue(int s, ir::Type type) {
    ir::ExprPool& pool = simplifier_.pool();
    const ir::Expr number[] = {pool.Int(num_unknown_++)};
    return pool.Load(s, number, type);
  }

  const schedule::State& state_;
  arith::Simplifier& simplifier_;
  const std::vector<bool>* const wanted_;
  ReadFn read_;
  int64_t num_unknown_ = 0;
};

}  // namespace

ir::Expr LowerBody(const schedule::State& state, int s, int output,
                   const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                   ReadFn read) {
  return BodyLowering(state, simplifier, nullptr, read).Lower({s, output}, axis_values);
}

void VisitReads(const schedule::State& state, int s, int output,
                const std::vector<arith::Linear>& axis_values, arith::Simplifier& simplifier,
                const std::vector<bool>& wanted, ReadFn read) {
  BodyLowering(state, simplifier, &wanted, read).Lower({s, output}, axis_values);
}

}  // namespace kiln::lower
