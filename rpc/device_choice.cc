#include "rpc/device_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace kiln {
namespace {

constexpr size_t kMaxListed = 20;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool Serves(const v1::WorkerState& worker, std::string_view kind) {
  return worker.kind() == v1::RUNNER &&
         std::find(worker.keys().begin(), worker.keys().end(), kind) != worker.keys().end();
}

// Returns whether `wanted` is a part of the key that is enough: a part of the device's name, or the
// beginning of a UUID. A number alone is no name, because it may be meant for an index.
bool IsPartOf(const std::string& wanted, const std::string& key, const v1::WorkerState& runner) {
  const size_t at = Lower(key).find(wanted);
  const bool is_number = wanted.find_first_not_of("0123456789") == std::string::npos;
  if (at == std::string::npos || is_number) return false;
  return key == runner.device() || (at == 0 && key.starts_with("GPU-"));
}

// Returns "NVIDIA H200 (cuda/sm_90, GPU-1f0c...)".
std::string Described(const v1::WorkerState& runner, std::string_view kind) {
  std::vector<std::string> keys;
  for (const std::string& key : runner.keys()) {
    if (key != kind && key != runner.device()) keys.push_back(key);
  }
  return keys.empty() ? runner.device()
                      : fmt::format("{} ({})", runner.device(), fmt::join(keys, ", "));
}

std::string Listing(std::string_view kind, const v1::ListReply& there) {
  std::set<std::string> devices;
  for (const v1::WorkerState& worker : there.workers()) {
    if (Serves(worker, kind)) devices.insert(Described(worker, kind));
  }
  if (devices.empty()) return "no runner is there for this target";
  std::string text = "there are: ";
  size_t listed = 0;
  for (const std::string& device : devices) {
    if (listed == kMaxListed) break;
    text += (listed++ > 0 ? "; " : "") + device;
  }
  if (listed < devices.size()) text += fmt::format("; and {} more", devices.size() - listed);
  return text;
}

}  // namespace

bool HasRunnerFor(std::string_view kind, const v1::ListReply& there) {
  return std::any_of(there.workers().begin(), there.workers().end(),
                     [&](const v1::WorkerState& worker) { return Serves(worker, kind); });
}

StatusOr<std::string> ChooseDevice(std::string_view wanted, std::string_view kind,
                                   const v1::ListReply& there) {
  const std::string lower = Lower(wanted);
  std::set<std::string> meant;
  for (const v1::WorkerState& worker : there.workers()) {
    if (!Serves(worker, kind)) continue;
    for (const std::string& key : worker.keys()) {
      if (Lower(key) == lower) return key;
      if (IsPartOf(lower, key, worker)) meant.insert(key);
    }
  }
  if (meant.size() == 1) return *meant.begin();
  return InvalidArgument("device '{}' is {} for target {}; {}", wanted,
                         meant.empty() ? "not there" : "not clear", kind, Listing(kind, there));
}

}  // namespace kiln
