#include "compiler/lower/body.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {
namespace {

// An element of an inlined stage.
struct InlinedRead {
  dag::Tensor tensor;
  bool in_index;
  std::vector<arith::Linear> indices;
  bool operator==(const InlinedRead& other) const {
    return tensor.op == other.tensor.op && tensor.output == other.tensor.output &&
           in_index == other.in_index && indices == other.indices;
  }
  template <typename H>
  friend H AbslHashValue(H hash, const InlinedRead& read) {
    hash = H::combine(std::move(hash), read.tensor.op, read.tensor.output, read.in_index);
    for (const arith::Linear& index : read.indices) {
      hash = H::combine(std::move(hash), index.constant, index.terms.size());
      for (const arith::Term& term : index.terms)
        hash = H::combine(std::move(hash), term.atom, term.coefficient);
    }
    return hash;
  }
};

bool HasCondition(ir::Expr body) {
  bool result = false;
  ir::Visit(body, [&](ir::Expr e) {
    result |= e->op == ir::Op::kIf || e->op == ir::Op::kSelect || e->op == ir::Op::kAnd ||
              e->op == ir::Op::kOr;
  });
  return result;
}

// Lowers the bodies of stages. An element of an inlined stage that reads inlined stages is lowered
// only once: otherwise stages that each read the two stages before them would double the work with
// every stage. Behind a condition, whose facts make expressions simpler, an element is lowered for
// that place alone.
class BodyLowering {
 public:
  // `wanted` marks the stages whose reads the body is visited for. Null: the body is lowered for
  // its value.
  BodyLowering(const schedule::State& state, arith::Simplifier& simplifier,
               const std::vector<bool>* wanted, ReadFn read)
      : state_(state), simplifier_(simplifier), wanted_(wanted), read_(read) {}

  ir::Expr Lower(const dag::Tensor& tensor, const std::vector<arith::Linear>& axis_values) {
    return LowerAt(tensor, axis_values, false);
  }

 private:
  ir::Expr LowerAt(const dag::Tensor& tensor, const std::vector<arith::Linear>& axis_values,
                   bool in_index) {
    const dag::OpNode& node = state_.dag()->node(tensor.op);
    const bool is_conditional = ReadsRemembered(node) && HasConditionIn(tensor);
    conditional_depth_ += is_conditional ? 1 : 0;
    const auto lower_load = [&](ir::Expr load) {
      return LowerLoad(node, load, axis_values, in_index);
    };
    const arith::Simplifier::LoadFn load_fn = lower_load;
    const ir::Expr value =
        simplifier_.Simplify(node.op->body(tensor.output), &axis_values, &load_fn);
    conditional_depth_ -= is_conditional ? 1 : 0;
    return value;
  }

  ir::Expr LowerInlined(const dag::Tensor& tensor, std::vector<arith::Linear> indices,
                        bool in_index) {
    if (conditional_depth_ > 0 || !ReadsInlined(state_.dag()->node(tensor.op)))
      return LowerAt(tensor, indices, in_index);
    InlinedRead read{tensor, in_index, std::move(indices)};
    if (const auto known = inlined_.find(read); known != inlined_.end()) return known->second;
    const ir::Expr value = LowerAt(tensor, read.indices, in_index);
    inlined_.emplace(std::move(read), value);
    return value;
  }

  bool IsInlined(const dag::Tensor& tensor) const {
    return state_.attach(tensor.op).kind == schedule::Attach::kInlined;
  }

  bool ReadsInlined(const dag::OpNode& node) const {
    return std::ranges::any_of(node.inputs,
                               [&](const dag::Tensor& input) { return IsInlined(input); });
  }

  // Returns whether elements that `node` reads are lowered only once. Only these ask for conditions
  // around them.
  bool ReadsRemembered(const dag::OpNode& node) const {
    return std::ranges::any_of(node.inputs, [&](const dag::Tensor& input) {
      return IsInlined(input) && ReadsInlined(state_.dag()->node(input.op));
    });
  }

  bool HasConditionIn(const dag::Tensor& tensor) {
    const auto [known, is_new] = conditional_.try_emplace({tensor.op, tensor.output}, false);
    if (is_new) known->second = HasCondition(state_.dag()->op(tensor.op).body(tensor.output));
    return known->second;
  }

  ir::Expr LowerLoad(const dag::OpNode& reader, ir::Expr load,
                     const std::vector<arith::Linear>& axis_values, bool in_index) {
    const dag::Tensor producer = reader.inputs[load->id];
    const bool is_inlined = IsInlined(producer);
    if (is_inlined && !in_index && !IsWanted(producer.op, load->type))
      return UnknownValue(producer.op, load->type);
    const auto nested = [&](ir::Expr inner) { return LowerLoad(reader, inner, axis_values, true); };
    const arith::Simplifier::LoadFn load_fn = nested;
    std::vector<arith::Linear> indices;
    indices.reserve(load->num_args);
    for (ir::Expr index : load->args())
      indices.push_back(simplifier_.ToLinear(index, &axis_values, &load_fn));
    if (is_inlined) return LowerInlined(producer, std::move(indices), in_index);
    return read_(producer.op, producer.output, indices, load->type);
  }

  // Integers decide which side of a condition is visited.
  bool IsWanted(int s, ir::Type type) const {
    return wanted_ == nullptr || (*wanted_)[s] || !type.is_float();
  }

  // Each unknown value differs from all others, so nothing follows from a comparison of two.
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
  // Number of bodies with conditions around the current one, including itself.
  int conditional_depth_ = 0;
  // Indexed by stage and output.
  std::map<std::pair<int, int>, bool> conditional_;
  absl::flat_hash_map<InlinedRead, ir::Expr> inlined_;
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
