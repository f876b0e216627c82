#include "compiler/target/meaning.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/target/recorded.h"
#include "device/x86_cpus.h"

namespace kiln::target {
namespace {

// An option that the kind does not know counts as one that changes code.
bool HasEffect(const TargetKind& kind, std::string_view name, OptionEffect effect) {
  const TargetOption* const option = kind.FindOption(name);
  return (option == nullptr ? OptionEffect::kCode : option->effect) == effect;
}

// Sorts "+b,-a" to "-a,+b".
std::string SortedFeatures(std::string_view features) {
  std::vector<std::string_view> all;
  while (!features.empty()) {
    const std::string_view feature = features.substr(0, features.find(','));
    features.remove_prefix(std::min(features.size(), feature.size() + 1));
    if (!feature.empty()) all.push_back(feature);
  }
  std::sort(all.begin(), all.end(),
            [](std::string_view a, std::string_view b) { return a.substr(1) < b.substr(1); });
  return fmt::format("{}", fmt::join(all, ","));
}

// Returns true if every option of `a` has the same value in `b`, or is one that `b` may leave open
// and does.
bool Allows(const Target& a, const Target& b) {
  return std::all_of(a.options.begin(), a.options.end(), [&](const auto& option) {
    const auto other = b.options.find(option.first);
    return other == b.options.end() ? HasEffect(*a.kind, option.first, OptionEffect::kMachine)
                                    : other->second == option.second;
  });
}

// Returns the target with only the options that matter, in one form.
Target MeaningOf(Target target) {
  std::erase_if(target.options, [&](const auto& option) {
    return HasEffect(*target.kind, option.first, OptionEffect::kNone);
  });
  if (const auto features = target.options.find("mattr"); features != target.options.end()) {
    features->second = SortedFeatures(features->second);
  }
  return target;
}

// Returns the level of the psABI that a processor has. "": the processor is not known here.
std::string_view LevelOf(const Target& target) {
  const auto named = device::FeaturesOfX86Cpu(target.Option(kLlvm.processor_option));
  if (!named) return {};
  return device::X86LevelOf(device::WithDifferences(*named, target.Option("mattr")));
}

// A level stands for each processor that has it and no higher one, because runners have announced
// the level in place of the processor.
bool IsLevelOf(const Target& level, const Target& processor) {
  const std::string name = level.Option(kLlvm.processor_option),
                    other = processor.Option(kLlvm.processor_option);
  return device::IsX86Level(name) && !device::IsX86Level(other) && LevelOf(processor) == name;
}

struct Cores {
  // 0: not known.
  int64_t number = 0;
  // True if the target's text gives the number, false if the hardware does.
  bool said = false;
};

Cores CoresOf(const Target& target, const HardwareParams& hardware) {
  const bool said = !target.Option("num-cores").empty();
  const bool known = target.kind->uses_host_cores && (said || hardware.num_cores > 0);
  if (!known) return {};
  return {DefaultHardware(target, hardware.num_cores).num_cores, said};
}

// Allows that hardware counts cores of two threads each.
bool MayBe(const Cores& a, const Cores& b) {
  return a.number == b.number || (!a.said && 2 * a.number == b.number);
}

bool SameCores(const Cores& a, const Cores& b) {
  return a.number == 0 || b.number == 0 || MayBe(a, b) || MayBe(b, a);
}

}  // namespace

bool MeanSame(const Target& a, const Target& b) {
  Target meaning_a = MeaningOf(a), meaning_b = MeaningOf(b);
  if (a.kind == &kLlvm && (IsLevelOf(a, b) || IsLevelOf(b, a))) {
    meaning_a.options.erase(std::string(kLlvm.processor_option));
    meaning_b.options.erase(std::string(kLlvm.processor_option));
  }
  return a.kind == b.kind && Allows(meaning_a, meaning_b) && Allows(meaning_b, meaning_a);
}

bool MeanSame(std::string_view target_a, const HardwareParams& hardware_a,
              std::string_view target_b, const HardwareParams& hardware_b) {
  if (target_a == target_b) return true;
  const auto a = ParseRecordedTarget(target_a), b = ParseRecordedTarget(target_b);
  if (!a.ok() || !b.ok() || !MeanSame(a->target, b->target)) return false;
  return SameCores(CoresOf(a->target, hardware_a), CoresOf(b->target, hardware_b));
}

}  // namespace kiln::target
