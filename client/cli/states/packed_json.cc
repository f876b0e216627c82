#include "client/cli/states/packed_json.h"

#include <memory>
#include <string>
#include <vector>

#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "compiler/lower/bounds.h"
#include "compiler/lower/packed_layout.h"

namespace kiln::client {
namespace {

using Json = nlohmann::json;

// Returns the load of the input by its only reader; null: there is none.
ir::Expr LoadOf(const dag::Dag& dag, int input, const dag::Operator*& reader) {
  for (const int consumer : dag.consumers(input)) {
    reader = &dag.op(consumer);
    for (const dag::Access& access : reader->properties().reads) {
      if (dag.node(consumer).inputs[static_cast<size_t>(access.slot)].op == input)
        return access.load;
    }
  }
  return nullptr;
}

// Returns the name of the axis that reads a dimension of the input.
std::string AxisName(const dag::Operator& reader, ir::Expr load, int dimension) {
  const ir::Expr index = load->arg(dimension);
  if (index->op != ir::Op::kVar) return fmt::format("d{}", dimension);
  const auto axis = static_cast<size_t>(index->id);
  const size_t spatial = reader.axes().size();
  return axis < spatial ? reader.axes()[axis].name : reader.reduce_axes()[axis - spatial].name;
}

}  // namespace

StatusOr<Json> PackedJson(const schedule::State& state, bool gpu) {
  const dag::DagPtr packed = dag::PackInputs(state.initial_dag(), [](int) { return true; });
  KILN_ASSIGN_OR_RETURN(const schedule::State replayed, schedule::Replay(packed, state.steps()));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<lower::Bounds> bounds,
                        lower::InferBounds(replayed, gpu));
  Json layouts = Json::object();
  for (const lower::PackedInput& input : lower::PackedLayouts(replayed, *bounds, gpu)) {
    const dag::Dag& dag = *replayed.dag();
    const dag::Operator* reader = nullptr;
    const ir::Expr load = LoadOf(dag, input.stage, reader);
    if (load == nullptr) continue;
    std::string layout;
    for (const PackedDim& dim : input.packing.dims)
      layout += fmt::format("{}{}", dim.extent, AxisName(*reader, load, dim.axis));
    layouts[dag.op(input.stage).name()] = layout;
  }
  return Json{{"dag", dag::PrintDag(*packed)}, {"layouts", std::move(layouts)}};
}

}  // namespace kiln::client
