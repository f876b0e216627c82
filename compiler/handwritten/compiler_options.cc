#include "compiler/handwritten/compiler_options.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/text/utf8.h"

namespace kiln::handwritten {
namespace {

constexpr size_t kMaxBytes = 256;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool AllOf(std::string_view text, bool (*is)(char)) {
  return !text.empty() && std::ranges::all_of(text, is);
}

// ---- kinds of values --------------------------------------------------------------------------

bool IsNumber(std::string_view text) { return text.size() <= 9 && AllOf(text, IsDigit); }
bool IsFlag(std::string_view text) { return text == "true" || text == "false"; }

// True for the name of a processor: "native", "x86-64-v3", "armv8.2-a+fp16".
bool IsProcessor(std::string_view text) {
  return AllOf(
      text, [](char c) { return IsDigit(c) || IsLetter(c) || c == '-' || c == '+' || c == '.'; });
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && !IsDigit(text[0]) &&
         AllOf(text, [](char c) { return IsDigit(c) || IsLetter(c); });
}

// True for "NAME", "NAME=VALUE" or "NAME(x)=VALUE". Slashes, quotes and backslashes are refused, so
// that a value can be a number, a name, a type or an expression, and no path.
bool IsMacro(std::string_view text) {
  return !text.empty() && IsLetter(text[0]) && AllOf(text, [](char c) {
    return IsDigit(c) || IsLetter(c) ||
           std::string_view(" .,+-*%()<>=!&|^~?:").find(c) != std::string_view::npos;
  });
}

// True for a text like "max-unroll-times=8".
bool IsParameter(std::string_view text) {
  const size_t equals = text.find('=');
  const auto is_name = [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; };
  return equals != text.npos && AllOf(text.substr(0, equals), is_name) &&
         IsNumber(text.substr(equals + 1));
}

// ---- the lists --------------------------------------------------------------------------------

using Words = std::span<const std::string_view>;

bool IsIn(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A word that ends with its value, such as "-march=" and its possible values.
struct Valued {
  std::string_view begin;
  bool (*is_value)(std::string_view value);
};

bool IsValued(std::span<const Valued> list, std::string_view option) {
  return std::ranges::any_of(list, [&](const Valued& valued) {
    return option.starts_with(valued.begin) && valued.is_value(option.substr(valued.begin.size()));
  });
}

constexpr std::string_view kC[] = {
    "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-Ofast", "-w",
    // Languages.
    "-std=c99", "-std=c11", "-std=c17", "-std=c18", "-std=c2x", "-std=c23", "-std=gnu99",
    "-std=gnu11", "-std=gnu17", "-std=gnu18", "-std=gnu2x", "-std=gnu23",
    // Values of options about floats and vectors.
    "-ffp-contract=fast", "-ffp-contract=on", "-ffp-contract=off", "-ffp-model=fast",
    "-ffp-model=precise", "-ffp-model=strict", "-fexcess-precision=fast",
    "-fexcess-precision=standard", "-fvect-cost-model=unlimited", "-fvect-cost-model=dynamic",
    "-fvect-cost-model=cheap", "-fvect-cost-model=very-cheap", "-fsimd-cost-model=unlimited",
    "-fsimd-cost-model=dynamic", "-fsimd-cost-model=cheap", "-mprefer-vector-width=none",
    "-mprefer-vector-width=128", "-mprefer-vector-width=256", "-mprefer-vector-width=512",
    "-mfpmath=sse", "-mfpmath=387", "-mfpmath=both", "-mfpmath=sse+387"};

// Options behind -f or -fno-.
constexpr std::string_view kCodeOptions[] = {
    // Floats.
    "fast-math", "associative-math", "reciprocal-math", "finite-math-only", "signed-zeros",
    "trapping-math", "math-errno", "rounding-math", "unsafe-math-optimizations", "signaling-nans",
    "cx-limited-range", "single-precision-constant", "approx-func", "honor-infinities",
    "honor-nans",
    // Loops and vectors.
    "unroll-loops", "unroll-all-loops", "peel-loops", "vectorize", "slp-vectorize",
    "tree-vectorize", "tree-loop-vectorize", "tree-slp-vectorize", "prefetch-loop-arrays",
    "split-loops", "unswitch-loops", "version-loops-for-strides", "loop-interchange",
    "loop-unroll-and-jam", "loop-block", "loop-strip-mine", "loop-nest-optimize",
    "graphite-identity", "ivopts", "move-loop-invariants", "modulo-sched",
    "modulo-sched-allow-regmoves", "variable-expansion-in-unroller", "split-ivs-in-unroller",
    "tree-loop-distribution", "tree-loop-distribute-patterns", "tree-loop-im", "tree-loop-ivcanon",
    "tree-loop-linear", "tree-loop-optimize", "predictive-commoning", "finite-loops",
    "aggressive-loop-optimizations", "first-final-value-replacement",
    // Other properties of a function.
    "strict-aliasing", "strict-overflow", "wrapv", "omit-frame-pointer", "inline",
    "inline-functions", "inline-small-functions", "inline-functions-called-once", "builtin", "gcse",
    "gcse-las", "gcse-sm", "gcse-after-reload", "if-conversion", "if-conversion2", "schedule-insns",
    "schedule-insns2", "sched-pressure", "selective-scheduling", "selective-scheduling2",
    "rename-registers", "ira-hoist-pressure", "ira-loop-pressure", "tree-pre", "tree-partial-pre",
    "tree-fre", "tree-vrp", "tree-dce", "tree-ch", "tree-sra", "tree-ter", "tree-sink",
    "tree-tail-merge", "tree-reassoc", "split-paths", "code-hoisting", "jump-tables",
    "crossjumping", "cse-follow-jumps", "expensive-optimizations", "ipa-cp", "ipa-cp-clone",
    "ipa-pta", "ipa-ra", "ipa-sra", "ipa-pure-const", "ipa-reference", "align-functions",
    "align-jumps", "align-labels", "align-loops", "reorder-blocks", "reorder-functions",
    "semantic-interposition", "stack-protector", "plt", "common", "function-sections",
    "data-sections", "zero-initialized-in-bss", "live-range-shrinkage", "optimize-strlen",
    "store-merging", "split-wide-types", "delete-null-pointer-checks"};

// Features of a processor, behind -m or -mno-.
constexpr std::string_view kProcessorOptions[] = {"sse",
                                                  "sse2",
                                                  "sse3",
                                                  "ssse3",
                                                  "sse4",
                                                  "sse4.1",
                                                  "sse4.2",
                                                  "sse4a",
                                                  "avx",
                                                  "avx2",
                                                  "fma",
                                                  "fma4",
                                                  "f16c",
                                                  "bmi",
                                                  "bmi2",
                                                  "lzcnt",
                                                  "popcnt",
                                                  "movbe",
                                                  "adx",
                                                  "aes",
                                                  "pclmul",
                                                  "sha",
                                                  "gfni",
                                                  "vaes",
                                                  "vpclmulqdq",
                                                  "xop",
                                                  "avx512f",
                                                  "avx512bw",
                                                  "avx512cd",
                                                  "avx512dq",
                                                  "avx512vl",
                                                  "avx512ifma",
                                                  "avx512vbmi",
                                                  "avx512vbmi2",
                                                  "avx512vnni",
                                                  "avx512bitalg",
                                                  "avx512vpopcntdq",
                                                  "avx512bf16",
                                                  "avx512fp16",
                                                  "avx512vp2intersect",
                                                  "avxvnni",
                                                  "avxifma",
                                                  "avxvnniint8",
                                                  "avxvnniint16",
                                                  "avxneconvert",
                                                  "amx-tile",
                                                  "amx-int8",
                                                  "amx-bf16",
                                                  "amx-fp16",
                                                  "prefetchw",
                                                  "prfchw",
                                                  "clflushopt",
                                                  "recip",
                                                  "vzeroupper",
                                                  "fancy-math-387",
                                                  "avx256-split-unaligned-load",
                                                  "avx256-split-unaligned-store",
                                                  "cld",
                                                  "red-zone",
                                                  "stackrealign",
                                                  "inline-all-stringops",
                                                  "inline-stringops-dynamically",
                                                  "unaligned-access",
                                                  "outline-atomics",
                                                  "daz-ftz"};

constexpr Valued kValuedC[] = {{"-D", IsMacro},
                               {"-U", IsIdentifier},
                               {"-march=", IsProcessor},
                               {"-mtune=", IsProcessor},
                               {"-mcpu=", IsProcessor},
                               {"--param=", IsParameter},
                               {"-finline-limit=", IsNumber},
                               {"-falign-functions=", IsNumber},
                               {"-falign-loops=", IsNumber},
                               {"-falign-jumps=", IsNumber},
                               {"-falign-labels=", IsNumber}};

// Options with one dash or two, as NVRTC takes them.
constexpr std::string_view kCuda[] = {
    "use_fast_math", "restrict",           "extra-device-vectorization",
    "lineinfo",      "generate-line-info", "default-device",
    "device-int128"};
constexpr Valued kValuedCuda[] = {{"maxrregcount=", IsNumber},
                                  {"fmad=", IsFlag},
                                  {"ftz=", IsFlag},
                                  {"prec-div=", IsFlag},
                                  {"prec-sqrt=", IsFlag},
                                  {"define-macro=", IsMacro},
                                  {"undefine-macro=", IsIdentifier}};

// Returns true if the option is one of the words behind -f or -m, with or without "no-".
bool IsSwitch(Words words, std::string_view begin, std::string_view option) {
  if (!option.starts_with(begin)) return false;
  option.remove_prefix(begin.size());
  if (option.starts_with("no-")) option.remove_prefix(3);
  return IsIn(words, option);
}

bool IsOfC(std::string_view option) {
  return IsIn(kC, option) || IsSwitch(kCodeOptions, "-f", option) ||
         IsSwitch(kProcessorOptions, "-m", option) || IsValued(kValuedC, option);
}

bool IsOfCuda(std::string_view option) {
  if (option.starts_with("-D")) return IsMacro(option.substr(2));
  if (option.starts_with("-U")) return IsIdentifier(option.substr(2));
  if (!option.starts_with('-')) return false;
  option.remove_prefix(option.starts_with("--") ? 2 : 1);
  return IsIn(kCuda, option) || IsValued(kValuedCuda, option);
}

}  // namespace

Status CheckCompilerOption(Language language, std::string_view option) {
  const bool is_c = language == Language::kC;
  if (option.size() <= kMaxBytes && (is_c ? IsOfC(option) : IsOfCuda(option))) return OkStatus();
  return InvalidArgument(
      "'{}' is no option that a {} kernel may have, expected a word like {} (each stands in "
      "docs/howto/tune-a-kernel.md; none names a file)",
      OneLine(option.substr(0, kMaxBytes)), LanguageName(language),
      is_c ? "-O2, -ffast-math, -mprefer-vector-width=512, -march=x86-64-v3 or -DNAME=1"
           : "--use_fast_math, --maxrregcount=64 or -DNAME=1");
}

}  // namespace kiln::handwritten
