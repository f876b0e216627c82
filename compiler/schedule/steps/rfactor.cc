#include <algorithm>

#include "compiler/ir/substitution.h"
#include "compiler/schedule/iter_map.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/insertion.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Checks that spatial loops are still the axes in order, that reduce loops are made of reduce axes
// only, and that no loop has an annotation or an attached stage.
Status CheckLoopsFactorable(const State& state, int number) {
  const Stage& stage = state.stage(number);
  int32_t next_axis = 0;
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) != Annotation::kNone) {
      return InvalidArgument(
          "{} is annotated with {}, which would be lost; expected rfactor before annotations",
          DescribeLoop(state, number, i), AnnotationName(stage.annotation(i)));
    }
    if (state.HasAttached(number, i)) {
      return InvalidArgument("stages {} are computed at {}; expected nothing attached",
                             DescribeStages(state, state.AttachedTo(number, i)),
                             DescribeLoop(state, number, i));
    }
    if (stage.loop(i).kind == IterKind::kReduce) continue;
    if (stage.loops[i].iter != next_axis++) {
      return InvalidArgument(
          "{} is not the next spatial axis, and changes of spatial loops would be lost; expected "
          "rfactor before them",
          DescribeLoop(state, number, i));
    }
  }
  return OkStatus();
}

Status CheckFactorable(const State& state, const RfactorStep& step) {
  KILN_RETURN_IF_ERROR(CheckLoop(state, step.stage_id, step.loop));
  const Stage& stage = state.stage(step.stage_id);
  if (state.attach(step.stage_id).kind == Attach::kInlined) {
    return InvalidArgument("the stage is inlined; expected a stage with loops");
  }
  if (stage.loop(step.loop).kind != IterKind::kReduce) {
    return InvalidArgument("{} is not a reduction loop; expected one",
                           DescribeLoop(state, step.stage_id, step.loop));
  }
  KILN_RETURN_IF_ERROR(CheckLoopsFactorable(state, step.stage_id));
  const int spatial = static_cast<int>(stage.op->axes().size());
  if (step.factor_iter < 0 || step.factor_iter > spatial) {
    return InvalidArgument("position {} of the new axis is out of range; expected 0 to {}",
                           step.factor_iter, spatial);
  }
  return OkStatus();
}

// Makes two operators out of one.
class Factoring {
 public:
  Factoring(const Stage& stage, const RfactorStep& step, std::span<const int64_t> extents)
      : stage_(stage), op_(*stage.op), step_(step), extents_(extents) {}

  // Makes name.rf, whose axes are the spatial axes and the factored loop. It reduces over the other
  // reduce loops.
  StatusOr<dag::OperatorPtr> Partial(std::string name) const {
    auto pool = std::make_shared<ir::ExprPool>();
    std::vector<dag::Axis> axes = op_.axes();
    axes.insert(axes.begin() + step_.factor_iter, LoopAxis(step_.loop, axes));
    std::vector<dag::Axis> reduce_axes;

    std::vector<ir::Expr> loop_vars(stage_.loops.size());
    const int num_axes = static_cast<int>(axes.size());
    for (int i = 0; i < static_cast<int>(loop_vars.size()); ++i) {
      if (i == step_.loop) {
        loop_vars[i] = pool->Var(step_.factor_iter);
      } else if (stage_.loop(i).kind != IterKind::kReduce) {
        const int32_t axis = stage_.loops[i].iter;
        loop_vars[i] = pool->Var(axis < step_.factor_iter ? axis : axis + 1);
      } else {
        loop_vars[i] = pool->Var(num_axes + static_cast<int32_t>(reduce_axes.size()));
        std::vector<dag::Axis> taken = axes;
        taken.insert(taken.end(), reduce_axes.begin(), reduce_axes.end());
        reduce_axes.push_back(LoopAxis(i, taken));
      }
    }
    const IterMap map = MapIters(stage_, loop_vars, extents_, *pool);
    const ir::Substitution values{
        .vars = {map.values.begin(), map.values.begin() + stage_.num_axes()}};
    std::vector<ir::Expr> bodies;
    for (int k = 0; k < op_.num_outputs(); ++k) {
      const ir::Expr identity = dag::ReduceIdentity(op_.reduction(), k, op_.type(k), *pool);
      bodies.push_back(pool->If(map.inside, pool->Substitute(op_.body(k), values), identity));
    }

    // Other attributes name axes or concern the whole operator, so they do not hold for this one.
    dag::Attrs attrs;
    attrs.layout_free_placeholders = op_.attrs().layout_free_placeholders;
    std::vector<ir::Type> types;
    std::vector<std::vector<int64_t>> shapes;
    for (int slot = 0; slot < op_.num_inputs(); ++slot) {
      types.push_back(op_.input_type(slot));
      shapes.push_back(op_.input_shape(slot));
    }
    dag::Reduction reduction = op_.reduction();
    if (reduce_axes.empty()) reduction = dag::Combiner::kNone;
    return dag::Operator::Compute(std::move(name), std::move(axes), std::move(reduce_axes),
                                  std::move(reduction), std::move(bodies), std::move(pool), types,
                                  shapes, attrs);
  }

  // Makes the operator with the old name, which reduces `partial` over the factored axis.
  StatusOr<dag::OperatorPtr> Final(const dag::Operator& partial) const {
    auto pool = std::make_shared<ir::ExprPool>();
    const int num_axes = static_cast<int>(op_.axes().size());
    std::vector<ir::Expr> indices;
    for (int i = 0; i < num_axes; ++i) indices.push_back(pool->Var(i));
    indices.insert(indices.begin() + step_.factor_iter, pool->Var(num_axes));
    std::vector<ir::Type> types;
    std::vector<ir::Expr> bodies;
    for (int k = 0; k < partial.num_outputs(); ++k) {
      types.push_back(partial.type(k));
      bodies.push_back(pool->Load(k, indices, types.back()));
    }
    const std::vector<std::vector<int64_t>> shapes(types.size(), partial.shape());
    return dag::Operator::Compute(op_.name(), op_.axes(), {partial.axes()[step_.factor_iter]},
                                  op_.reduction(), std::move(bodies), std::move(pool), types,
                                  shapes);
  }

 private:
  // Returns the loop as an axis. Its name is like the loop's ("k.0" becomes k_0) and is not in
  // `taken`.
  dag::Axis LoopAxis(int loop, const std::vector<dag::Axis>& taken) const {
    std::string name = LoopName(stage_, loop);
    std::replace(name.begin(), name.end(), '.', '_');
    std::replace(name.begin(), name.end(), '@', '_');
    while (std::any_of(taken.begin(), taken.end(), [&](const auto& a) { return a.name == name; })) {
      name += '_';
    }
    return {std::move(name), extents_[stage_.loops[loop].iter]};
  }

  const Stage& stage_;
  const dag::Operator& op_;
  const RfactorStep& step_;
  const std::span<const int64_t> extents_;
};

// The partial results stand before the operator that reduces them.
StatusOr<dag::DagPtr> Factored(const dag::Dag& dag, int stage, const Factoring& factoring) {
  std::vector<dag::OpNode> nodes = NodesWithGap(dag, stage);
  dag::OpNode& partial = nodes[stage];
  dag::OpNode& final_op = nodes[stage + 1];
  KILN_ASSIGN_OR_RETURN(partial.op, factoring.Partial(CacheName(dag, dag.op(stage).name(), "rf")));
  KILN_ASSIGN_OR_RETURN(final_op.op, factoring.Final(*partial.op));
  partial.inputs = dag.node(stage).inputs;
  final_op.inputs.clear();
  for (int k = 0; k < partial.op->num_outputs(); ++k) final_op.inputs.push_back({stage, k});
  return dag::Dag::Make(std::move(nodes));
}

// The key contains the loops, because the new operators depend on them.
dag::EditKey KeyOf(const RfactorStep& step, const Stage& stage, std::span<const int64_t> extents) {
  dag::EditKey key = BeginKey(EditKind::kRfactor, step.stage_id);
  key.insert(key.end(), {step.loop, step.factor_iter});
  for (const LoopIter& loop : stage.loops) key.push_back(loop.iter);
  for (const Relation& relation : stage.relations) {
    key.insert(key.end(), {relation.kind, relation.inner_to_outer});
    AddToKey(relation.parents, key);
    AddToKey(relation.children, key);
    AddToKey(relation.lengths, key);
  }
  AddToKey(extents, key);
  return key;
}

}  // namespace

StatusOr<StepPtr> RfactorStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const int factor_iter = reader.Int("factor_iter");
  return reader.Make<RfactorStep>(stage, loop, factor_iter);
}

Status RfactorStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckFactorable(state, *this));
  KILN_RETURN_IF_ERROR(CheckRoomForStage(state));
  const dag::Dag& dag = *state.dag();
  const Stage& stage = state.stage(stage_id);
  KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, IterExtents(stage));
  KILN_ASSIGN_OR_RETURN(dag::DagPtr changed, MakeOnce(dag, KeyOf(*this, stage, extents), [&] {
                          return Factored(dag, stage_id, Factoring(stage, *this, extents));
                        }));
  const int reset[] = {stage_id + 1};
  state.InsertStage(std::move(changed), stage_id, reset);
  state.MutableStage(stage_id).is_partial_reduction = true;
  return OkStatus();
}

std::string RfactorStep::ToJson() const {
  return fmt::format("[\"RF\", {}, {}, {}]", stage_id, loop, factor_iter);
}

uint64_t RfactorStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(factor_iter).value();
}

}  // namespace kiln::schedule
