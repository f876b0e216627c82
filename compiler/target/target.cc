#include "compiler/target/target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace kiln::target {
namespace {

// Returns "llvm, cuda or null".
std::string Names(TargetKinds kinds) {
  std::string names;
  for (size_t i = 0; i < kinds.size(); ++i) {
    names += i == 0 ? "" : i + 1 < kinds.size() ? ", " : " or ";
    names += kinds[i]->name;
  }
  return names;
}

Status CheckValue(const TargetOption& option, std::string_view value) {
  if (value.empty())
    return InvalidArgument("target option -{} has no value, expected -{}=...", option.name,
                           option.name);
  if (option.is_valid != nullptr && !option.is_valid(value)) {
    return InvalidArgument("target option -{}={}: expected {}", option.name, value,
                           option.expected);
  }
  for (char c : value) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' ||
        static_cast<unsigned char>(c) >= 127) {
      return InvalidArgument(
          "target option -{}: its value holds the byte {:#04x}, expected printable ASCII",
          option.name, static_cast<unsigned char>(c));
    }
  }
  return OkStatus();
}

Status AddOption(Target& target, std::string_view word) {
  std::string_view text = word;
  if (!text.starts_with('-')) {
    return InvalidArgument("target '{}' is followed by '{}', expected options like -mcpu=znver4",
                           target.kind->name, word);
  }
  while (text.starts_with('-')) text.remove_prefix(1);
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string_view value =
      equals < text.size() ? text.substr(equals + 1) : std::string_view();
  const TargetOption* const option = target.kind->FindOption(name);
  if (option == nullptr) {
    std::vector<std::string_view> names;
    for (const TargetOption& o : target.kind->options) {
      // Options for which no value is valid belong to other compilers, so they are not listed.
      if (o.is_valid == nullptr || o.effect != OptionEffect::kNone) names.push_back(o.name);
    }
    return InvalidArgument("target {} has no option '{}'; it has: {}", target.kind->name, name,
                           fmt::join(names, ", "));
  }
  KILN_RETURN_IF_ERROR(CheckValue(*option, value));
  if (!target.options.emplace(name, value).second)
    return InvalidArgument("target option -{} is given twice", name);
  return OkStatus();
}

std::vector<std::string_view> Words(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpace, end);
  }
  return words;
}

}  // namespace

std::string Target::Option(std::string_view name) const {
  auto it = options.find(std::string(name));
  return it == options.end() ? std::string() : it->second;
}

int Target::GpuArch() const { return kind->gpu_arch == nullptr ? 0 : kind->gpu_arch(*this); }

StatusOr<Target> ParseTarget(std::string_view text, TargetKinds kinds) {
  const std::vector<std::string_view> words = Words(text);
  if (words.empty())
    return InvalidArgument("the target is empty, expected {}, with options", Names(kinds));
  const auto found = std::ranges::find_if(kinds, [&](const TargetKind* kind) {
    return words[0] == kind->name || words[0] == kind->other_name;
  });
  if (found == kinds.end())
    return InvalidArgument("unknown target '{}', expected {}", words[0], Names(kinds));
  Target target{.kind = *found};
  for (size_t i = 1; i < words.size(); ++i) KILN_RETURN_IF_ERROR(AddOption(target, words[i]));
  return target;
}

std::string PrintTarget(const Target& target) {
  std::string text(target.kind->name);
  for (const auto& [name, value] : target.options) text += fmt::format(" -{}={}", name, value);
  return text;
}

HardwareParams DefaultHardware(const Target& target, int host_cores) {
  return target.kind->default_hardware(target, host_cores);
}

HardwareParams FillHardware(const Target& target, HardwareParams hardware) {
  if (!target.is_gpu()) return hardware;
  const HardwareParams defaults = DefaultHardware(target, 0);
  if (hardware.max_threads_per_block == 0 && hardware.warp_size == 0) return defaults;
  return KnownOr(hardware, defaults);
}

}  // namespace kiln::target
