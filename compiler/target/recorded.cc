#include "compiler/target/recorded.h"

#include <algorithm>

namespace kiln::target {
namespace {

// Returns "opt-level" for "--opt-level=3". "": the word is no option.
std::string_view OptionName(std::string_view word) {
  if (!word.starts_with('-')) return {};
  while (word.starts_with('-')) word.remove_prefix(1);
  return word.substr(0, word.find('='));
}

// Returns true for an option for which no value is valid.
bool IsForeign(std::string_view option, TargetKinds kinds) {
  return std::ranges::any_of(kinds, [&](const TargetKind* kind) {
    const TargetOption* const found = kind->FindOption(option);
    return found != nullptr && found->effect == OptionEffect::kNone && found->is_valid != nullptr;
  });
}

}  // namespace

StatusOr<RecordedTarget> ParseRecordedTarget(std::string_view text, TargetKinds kinds) {
  constexpr std::string_view kSpace = " \t\r\n";
  RecordedTarget recorded;
  std::string kept;
  for (size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (IsForeign(OptionName(word), kinds)) {
      recorded.dropped.emplace_back(word);
    } else {
      kept += kept.empty() ? "" : " ";
      kept += word;
    }
    begin = text.find_first_not_of(kSpace, end);
  }
  KILN_ASSIGN_OR_RETURN(recorded.target, ParseTarget(kept, kinds));
  return recorded;
}

}  // namespace kiln::target
