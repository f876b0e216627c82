#include "compiler/target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace kiln::target {
namespace {

enum class Value : uint8_t { kText, kPositive, kArch };

struct KnownOption {
  std::string_view name;
  Value value;
};

// Kept as they are: old logs carry them.
constexpr KnownOption kCommon[] = {
    {"device", Value::kText}, {"host", Value::kText},  {"keys", Value::kText},
    {"libs", Value::kText},   {"model", Value::kText}, {"tag", Value::kText},
};
constexpr KnownOption kLlvm[] = {
    {"mabi", Value::kText},      {"mattr", Value::kText},
    {"mcpu", Value::kText},      {"mfloat-abi", Value::kText},
    {"mtriple", Value::kText},   {"num-cores", Value::kPositive},
    {"opt-level", Value::kText}, {"vector-width", Value::kPositive},
};
constexpr KnownOption kCuda[] = {
    {"arch", Value::kArch},
    {"max_num_threads", Value::kPositive},
    {"max_shared_memory_per_block", Value::kPositive},
    {"max_threads_per_block", Value::kPositive},
    {"registers_per_block", Value::kPositive},
    {"thread_warp_size", Value::kPositive},
};

std::vector<KnownOption> OptionsOf(TargetKind kind) {
  std::vector<KnownOption> options(std::begin(kCommon), std::end(kCommon));
  if (kind != TargetKind::kCuda) options.insert(options.end(), std::begin(kLlvm), std::end(kLlvm));
  if (kind != TargetKind::kLlvm) options.insert(options.end(), std::begin(kCuda), std::end(kCuda));
  std::sort(options.begin(), options.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return options;
}

// Positive, 32 bits; 0 when it is not.
int32_t PositiveNumber(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}

bool IsArch(std::string_view text) {
  // sm_90, sm_90a
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
  return text.size() >= 2 && text.size() <= 3 && PositiveNumber(text) > 0;
}

Status CheckValue(const KnownOption& option, std::string_view value) {
  if (value.empty())
    return InvalidArgument("target option -{} has no value, expected -{}=...", option.name,
                           option.name);
  if (option.value == Value::kPositive && PositiveNumber(value) == 0) {
    return InvalidArgument("target option -{}={}: expected a positive whole number", option.name,
                           value);
  }
  if (option.value == Value::kArch && !IsArch(value)) {
    return InvalidArgument("target option -{}={}: expected a GPU architecture like sm_90",
                           option.name, value);
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
                           TargetKindName(target.kind), word);
  }
  while (text.starts_with('-')) text.remove_prefix(1);
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const std::string_view value =
      equals < text.size() ? text.substr(equals + 1) : std::string_view();
  const std::vector<KnownOption> known = OptionsOf(target.kind);
  auto it = std::find_if(known.begin(), known.end(),
                         [&](const KnownOption& o) { return o.name == name; });
  if (it == known.end()) {
    std::vector<std::string_view> names;
    for (const KnownOption& o : known) names.push_back(o.name);
    return InvalidArgument("target {} has no option '{}'; it has: {}", TargetKindName(target.kind),
                           name, fmt::join(names, ", "));
  }
  KILN_RETURN_IF_ERROR(CheckValue(*it, value));
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

int32_t NumberOption(const Target& target, std::string_view name, int32_t otherwise) {
  const int32_t value = PositiveNumber(target.Option(name));
  return value > 0 ? value : otherwise;
}

}  // namespace

std::string Target::Option(std::string_view name) const {
  auto it = options.find(std::string(name));
  return it == options.end() ? std::string() : it->second;
}

int Target::GpuArch() const {
  const std::string arch = is_gpu() ? Option("arch") : "";
  int number = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  return number;
}

std::string_view TargetKindName(TargetKind kind) {
  switch (kind) {
    case TargetKind::kLlvm:
      return "llvm";
    case TargetKind::kCuda:
      return "cuda";
    case TargetKind::kNull:
      return "null";
  }
  return "";
}

StatusOr<Target> ParseTarget(std::string_view text) {
  const std::vector<std::string_view> words = Words(text);
  if (words.empty())
    return InvalidArgument("the target is empty, expected llvm, cuda or null, with options");
  Target target;
  if (words[0] == "llvm" || words[0] == "cpu") {
    target.kind = TargetKind::kLlvm;
  } else if (words[0] == "cuda") {
    target.kind = TargetKind::kCuda;
  } else if (words[0] == "null") {
    target.kind = TargetKind::kNull;
  } else {
    return InvalidArgument("unknown target '{}', expected llvm, cuda or null", words[0]);
  }
  for (size_t i = 1; i < words.size(); ++i) KILN_RETURN_IF_ERROR(AddOption(target, words[i]));
  return target;
}

std::string PrintTarget(const Target& target) {
  std::string text(TargetKindName(target.kind));
  for (const auto& [name, value] : target.options) text += fmt::format(" -{}={}", name, value);
  return text;
}

HardwareParams DefaultHardware(const Target& target, int host_cores) {
  HardwareParams hardware;
  if (!target.is_gpu()) {
    hardware.num_cores = NumberOption(target, "num-cores", std::max(host_cores, 1));
    return hardware;
  }
  hardware.num_cores = -1;
  hardware.vector_unit_bytes = 16;
  hardware.max_shared_memory_per_block_bytes =
      NumberOption(target, "max_shared_memory_per_block", 49152);
  hardware.max_local_memory_per_block_bytes = std::numeric_limits<int32_t>::max();
  hardware.max_threads_per_block =
      NumberOption(target, "max_threads_per_block", NumberOption(target, "max_num_threads", 1024));
  hardware.warp_size = NumberOption(target, "thread_warp_size", 32);
  hardware.max_vthread_extent = std::max(hardware.warp_size / 4, 1);
  return hardware;
}

HardwareParams FillHardware(const Target& target, HardwareParams hardware) {
  if (!target.is_gpu()) return hardware;
  const HardwareParams defaults = DefaultHardware(target, 0);
  if (hardware.max_threads_per_block == 0 && hardware.warp_size == 0) return defaults;
  return KnownOr(hardware, defaults);
}

}  // namespace kiln::target
