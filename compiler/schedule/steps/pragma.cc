#include <charconv>
#include <optional>

#include "compiler/schedule/primitives.h"
#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

constexpr std::string_view kSkipRegion = "debug_skip_region";
constexpr std::string_view kPrefixes[] = {kAutoUnrollPragma, kMinBlocksPragma, kFragmentsPragma};
constexpr int kMostBlocks = 32, kMostFragments = 2;

// The N of "prefix$N".
std::optional<int32_t> Number(std::string_view pragma, std::string_view prefix) {
  if (!pragma.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = pragma.substr(prefix.size());
  int32_t value = -1;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || stop != digits.data() + digits.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<int32_t> PragmaNumber(const Step& step, std::string_view prefix) {
  const auto* pragma = As<PragmaStep>(step);
  return pragma == nullptr ? std::nullopt : Number(pragma->pragma, prefix);
}

StatusOr<StepPtr> PragmaStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const std::string_view pragma = reader.Text("pragma");
  return reader.Make<PragmaStep>(stage, loop, std::string(pragma));
}

Status PragmaStep::ApplyTo(State& state) const {
  const std::optional<int32_t> unroll = Number(pragma, kAutoUnrollPragma);
  const std::optional<int32_t> blocks = Number(pragma, kMinBlocksPragma);
  const std::optional<int32_t> fragments = Number(pragma, kFragmentsPragma);
  if (!unroll && !blocks && !fragments && pragma != kSkipRegion) {
    return InvalidArgument(
        "unknown pragma \"{}\"; expected \"{}N\", \"{}N\" or \"{}N\" with N >= 0, or \"{}\"",
        pragma, kAutoUnrollPragma, kMinBlocksPragma, kFragmentsPragma, kSkipRegion);
  }
  if (blocks && *blocks > kMostBlocks)
    return InvalidArgument("{} blocks are out of range; expected 0 to {}", *blocks, kMostBlocks);
  if (fragments && *fragments > kMostFragments)
    return InvalidArgument("fragments {}: expected 0 to {}", *fragments, kMostFragments);
  KILN_RETURN_IF_ERROR(CheckLoop(state, stage_id, loop));
  if (unroll) {
    state.MutableStage(stage_id).auto_unroll_max_step = *unroll;
  } else if (blocks) {
    state.MutableStage(stage_id).min_blocks = *blocks;
  } else if (fragments) {
    state.MutableStage(stage_id).fragments = *fragments;
  } else {
    state.SetAttach(stage_id, Attach{});
  }
  return OkStatus();
}

std::string PragmaStep::ToJson() const {
  return fmt::format("[\"PR\", {}, {}, \"{}\"]", stage_id, loop, pragma);
}

std::string PragmaStep::ToPrimitives(const State& before, const State&) const {
  const std::string stage = StageVar(before, stage_id);
  const std::string var = LoopVar(before, stage_id, loop);
  for (const std::string_view prefix : kPrefixes) {
    if (const std::optional<int32_t> number = Number(pragma, prefix)) {
      return fmt::format("s[{}].pragma({}, \"{}\", {})\n", stage, var,
                         prefix.substr(0, prefix.size() - 1), *number);
    }
  }
  return fmt::format("s[{}].pragma({}, \"{}\")\n", stage, var, pragma);
}

uint64_t PragmaStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(std::string_view(pragma)).value();
}

uint64_t PragmaStep::ShapeHash() const {
  for (const std::string_view prefix : kPrefixes) {
    if (Number(pragma, prefix)) return StepHash(kTag).Add(stage_id).Add(prefix).value();
  }
  return Hash();
}

bool PragmaStep::IsExtension() const {
  return Number(pragma, kMinBlocksPragma) || Number(pragma, kFragmentsPragma);
}

}  // namespace kiln::schedule
