// Parses targets. A target that parses prints as a text that parses to the same, has hardware, and
// has the same meaning as itself. Each line of an input is a target.
#include <string>
#include <vector>

#include "compiler/target/meaning.h"
#include "compiler/target/target.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

// Room for a few targets.
constexpr size_t kMaxBytes = 256;

void CheckTarget(const target::Target& target) {
  const auto parse = [](const std::string& text) { return target::ParseTarget(text); };
  CheckRoundTrip(target, target::PrintTarget, parse);
  const std::string printed = target::PrintTarget(target);
  KILN_CHECK(target.GpuArch() >= 0, "{}", printed);
  KILN_CHECK(target::MeanSame(target, target), "{}", printed);
  target::FillHardware(target, target::DefaultHardware(target, 8));
}

void CheckPair(std::string_view a, std::string_view b) {
  KILN_CHECK(target::MeanSame(a, {}, b, {}) == target::MeanSame(b, {}, a, {}), "{} and {}", a, b);
  KILN_CHECK(target::MeanSame(a, {}, a, {}), "{}", a);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  if (size > fuzz::kMaxBytes) return -1;
  std::string_view text = fuzz::InputText(data, size), before;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto target = target::ParseTarget(line);
    if (target.ok()) {
      fuzz::CheckTarget(*target);
    } else {
      fuzz::CheckRefusal(target.status());
    }
    fuzz::CheckPair(before, line);
    before = line;
  }
  return 0;
}
