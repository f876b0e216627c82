#include <charconv>
#include <optional>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

constexpr std::string_view kSkipRegion = "debug_skip_region";

// Returns the N of "$N".
std::optional<int32_t> Number(std::string_view text) {
  if (!text.starts_with('$')) return std::nullopt;
  int32_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<PragmaStep::Setting> SettingOf(std::string_view pragma) {
  for (const ir::HintRow& row : ir::kHints) {
    if (!pragma.starts_with(row.pragma)) continue;
    if (const auto value = Number(pragma.substr(row.pragma.size())))
      return PragmaStep::Setting{row.hint, *value};
  }
  return std::nullopt;
}

std::string KnownPragmas() {
  std::string known;
  for (const ir::HintRow& row : ir::kHints)
    known += fmt::format("{}\"{}$N\"", known.empty() ? "" : ", ", row.pragma);
  return fmt::format("{} with N >= 0, or \"{}\"", known, kSkipRegion);
}

}  // namespace

PragmaStep::PragmaStep(int stage_id, int loop, std::string text)
    : stage_id(stage_id), loop(loop), pragma(std::move(text)), setting(SettingOf(pragma)) {}

StepPtr HintStep(int stage, ir::Hint hint, int32_t value) {
  return std::make_shared<PragmaStep>(stage, 0,
                                      fmt::format("{}${}", ir::RowOf(hint).pragma, value));
}

std::optional<int32_t> HintOf(const Step& step, ir::Hint hint) {
  const auto* pragma = As<PragmaStep>(step);
  if (pragma == nullptr || !pragma->setting || pragma->setting->hint != hint) return std::nullopt;
  return pragma->setting->value;
}

StatusOr<StepPtr> PragmaStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const std::string_view pragma = reader.Text("pragma");
  return reader.Make<PragmaStep>(stage, loop, std::string(pragma));
}

Status PragmaStep::ApplyTo(State& state) const {
  if (!setting && pragma != kSkipRegion)
    return InvalidArgument("unknown pragma \"{}\"; expected {}", pragma, KnownPragmas());
  if (setting) {
    const ir::HintRow& row = ir::RowOf(setting->hint);
    if (setting->value > row.most)
      return InvalidArgument("{} {}: expected 0 to {}", row.pragma, setting->value, row.most);
  }
  KILN_RETURN_IF_ERROR(CheckLoop(state, stage_id, loop));
  if (setting) {
    state.MutableStage(stage_id).hints[setting->hint] = setting->value;
  } else {
    state.SetAttach(stage_id, Attach{});
  }
  return OkStatus();
}

std::string PragmaStep::ToJson() const {
  return fmt::format("[\"PR\", {}, {}, \"{}\"]", stage_id, loop, pragma);
}

uint64_t PragmaStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(std::string_view(pragma)).value();
}

uint64_t PragmaStep::ShapeHash() const {
  if (!setting) return Hash();
  return StepHash(kTag).Add(stage_id).Add(static_cast<int>(setting->hint)).value();
}

bool PragmaStep::IsExtension() const { return setting && ir::RowOf(setting->hint).is_extension; }

}  // namespace kiln::schedule
