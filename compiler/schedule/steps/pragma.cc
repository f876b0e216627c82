#include <charconv>
#include <optional>

#include "compiler/schedule/primitives.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

constexpr std::string_view kUnrollPrefix = "auto_unroll_max_step$";
constexpr std::string_view kSkipRegion = "debug_skip_region";

// The N of "auto_unroll_max_step$N".
std::optional<int32_t> UnrollMaxStep(std::string_view pragma) {
  if (!pragma.starts_with(kUnrollPrefix)) return std::nullopt;
  const std::string_view digits = pragma.substr(kUnrollPrefix.size());
  int32_t value = -1;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || stop != digits.data() + digits.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

StatusOr<StepPtr> PragmaStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const std::string_view pragma = reader.Text("pragma");
  return reader.Make<PragmaStep>(stage, loop, std::string(pragma));
}

Status PragmaStep::ApplyTo(State& state) const {
  const std::optional<int32_t> unroll = UnrollMaxStep(pragma);
  if (!unroll && pragma != kSkipRegion) {
    return InvalidArgument("unknown pragma \"{}\"; expected \"{}N\" with N >= 0, or \"{}\"", pragma,
                           kUnrollPrefix, kSkipRegion);
  }
  KILN_RETURN_IF_ERROR(CheckLoop(state, stage_id, loop));
  if (unroll) {
    state.MutableStage(stage_id).auto_unroll_max_step = *unroll;
  } else {
    state.mutable_attach()[stage_id] = Attach{};
  }
  return OkStatus();
}

std::string PragmaStep::ToJson() const {
  return fmt::format("[\"PR\", {}, {}, \"{}\"]", stage_id, loop, pragma);
}

std::string PragmaStep::ToPrimitives(const State& before, const State&) const {
  const std::string stage = StageVar(before, stage_id);
  const std::string var = LoopVar(before, stage_id, loop);
  if (const std::optional<int32_t> unroll = UnrollMaxStep(pragma)) {
    return fmt::format("s[{}].pragma({}, \"auto_unroll_max_step\", {})\n", stage, var, *unroll);
  }
  return fmt::format("s[{}].pragma({}, \"{}\")\n", stage, var, pragma);
}

uint64_t PragmaStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(std::string_view(pragma)).value();
}

}  // namespace kiln::schedule
