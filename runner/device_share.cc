#include "runner/device_share.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kiln::runner {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);

}  // namespace

StatusOr<double> ParseShare(std::string_view text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, percent);
  const bool is_percent = error == std::errc() && at + 1 == end && *at == '%';
  if (is_percent && percent >= 1 && percent <= 100) return percent / 100;
  return InvalidArgument("'{}' is no share; expected a percentage from 1% to 100%, as in 25%",
                         text);
}

DeviceShare::Use::~Use() {
  if (has_begun_) share_->Note(begin_ns_);
}

Status DeviceShare::Use::Begin(const std::function<bool()>& cancelled) {
  if (share_ == nullptr) return OkStatus();
  KILN_RETURN_IF_ERROR(share_->Rest(cancelled));
  has_begun_ = true;
  begin_ns_ = share_->clock_.MonotonicNanos();
  return OkStatus();
}

Status DeviceShare::Rest(const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  while (true) {
    const absl::Duration left = absl::Nanoseconds(rested_ns_ - clock_.MonotonicNanos());
    if (left <= absl::ZeroDuration()) return OkStatus();
    if (left > kLongestWait) {
      return ResourceExhausted("this runner {}, and the device rests for {:.0f} s more", Sentence(),
                               absl::ToDoubleSeconds(left));
    }
    clock_.WaitFor(lock, never_, std::min(left, kLook), [] { return false; });
    lock.unlock();
    const bool stop = cancelled();
    lock.lock();
    if (stop) return Cancelled("cancelled while the device rests");
  }
}

void DeviceShare::Note(int64_t begin_ns) {
  std::lock_guard lock(mutex_);
  const int64_t used_ns = clock_.MonotonicNanos() - begin_ns;
  rested_ns_ = begin_ns + static_cast<int64_t>(std::ceil(static_cast<double>(used_ns) / share_));
}

std::string DeviceShare::Sentence() const {
  return fmt::format("takes at most {:.3g}% of the device's time", 100 * share_);
}

}  // namespace kiln::runner
