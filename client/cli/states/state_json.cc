#include "client/cli/states/state_json.h"

#include <string>
#include <vector>

#include "compiler/dag/text.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/step.h"

namespace kiln::client {
namespace {

using Json = nlohmann::json;

Json LoopJson(const schedule::Stage& stage, int loop) {
  const schedule::IterVar& iter = stage.loop(loop);
  return {{"name", schedule::LoopName(stage, loop)},
          {"extent", iter.extent == schedule::kUnknownExtent ? Json() : Json(iter.extent)},
          {"kind", static_cast<int>(iter.kind)},
          {"annotation", static_cast<int>(stage.annotation(loop))}};
}

Json StageJson(const schedule::State& state, int number, const std::string& name) {
  const schedule::Stage& stage = state.stage(number);
  const schedule::Attach& attach = state.attach(number);
  Json loops = Json::array();
  for (size_t i = 0; i < stage.loops.size(); ++i)
    loops.push_back(LoopJson(stage, static_cast<int>(i)));
  Json hints = Json::object();
  for (const ir::HintRow& row : ir::kHints) {
    if (stage.hints[row.hint] != 0) hints[std::string(row.word)] = stage.hints[row.hint];
  }
  return {{"name", name},
          {"is_placeholder", stage.is_placeholder()},
          {"shape", stage.op->shape()},
          {"compute_at", static_cast<int>(attach.kind)},
          {"attach_stage", attach.stage},
          {"attach_loop", attach.loop},
          {"storage_offset", stage.align_offset},
          {"hints", std::move(hints)},
          {"loops", std::move(loops)}};
}

}  // namespace

Json StateJson(const schedule::State& state) {
  const std::vector<std::string> names = dag::DisplayNames(*state.dag());
  Json stages = Json::array();
  for (int i = 0; i < state.num_stages(); ++i)
    stages.push_back(StageJson(state, i, names[static_cast<size_t>(i)]));
  return {{"stages", std::move(stages)},
          {"steps", schedule::PrintSteps(state.steps())},
          {"text", schedule::PrintLoops(state)},
          {"concrete", state.concrete()}};
}

}  // namespace kiln::client
