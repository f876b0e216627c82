#include "scheduler/callbacks/served_objective.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace kiln::scheduler {
namespace {

constexpr char kName[] = "the objective";
constexpr double kShorter = 1e-3;
// Lists of latencies whose values are remembered. The task scheduler asks about the latencies so
// far and about expected ones in turns.
constexpr size_t kRemembered = 4;

class ServedObjective {
 public:
  ServedObjective(ServedSearch& search, double target_s) : search_(search), target_s_(target_s) {}

  double Value(std::span<const double> latencies_s) {
    return std::max(At(latencies_s).value, target_s_);
  }

  std::vector<double> Slopes(std::span<const double> latencies_s) {
    const Point& point = At(latencies_s);
    const bool is_reached = target_s_ > 0 && point.value <= target_s_;
    if (is_reached || point.slopes.empty()) return std::vector<double>(latencies_s.size(), 0.0);
    return point.slopes;
  }

 private:
  struct Point {
    std::vector<double> latencies_s;
    double value = 0;
    std::vector<double> slopes;  // empty after a failure
  };

  const Point& At(std::span<const double> latencies_s) {
    for (const Point& point : points_)
      if (std::ranges::equal(point.latencies_s, latencies_s)) return point;
    points_.push_front(Ask({latencies_s.begin(), latencies_s.end()}));
    if (points_.size() > kRemembered) points_.pop_back();
    return points_.front();
  }

  Point Ask(std::vector<double> latencies_s) {
    const size_t n = latencies_s.size();
    v1::CallbackRequest request;
    v1::ObjectiveCall& call = *request.mutable_objective();
    call.set_points(static_cast<uint32_t>(n + 2));
    for (size_t point = 0; point < n + 2; ++point) {
      for (size_t i = 0; i < n; ++i) {
        const bool is_shorter = point == i + 1 || point == n + 1;
        call.add_latencies_s(latencies_s[i] * (is_shorter ? 1 - kShorter : 1));
      }
    }
    StatusOr<v1::CallbackReply> reply = search_.Call(std::move(request), kName);
    if (reply.ok()) {
      if (const Status checked = Check(*reply, n + 2); !checked.ok()) reply = search_.Fail(checked);
    }
    if (!reply.ok()) return {.latencies_s = std::move(latencies_s), .value = 0, .slopes = {}};
    return PointOf(std::move(latencies_s), reply->values());
  }

  static Status Check(const v1::CallbackReply& reply, size_t points) {
    if (static_cast<size_t>(reply.values_size()) != points) {
      return InvalidArgument("{} returned {} values for {} lists of latencies, expected one each",
                             kName, reply.values_size(), points);
    }
    for (const double value : reply.values()) {
      if (!std::isfinite(value))
        return InvalidArgument("{} returned {}, expected a finite number", kName, value);
    }
    return OkStatus();
  }

  template <typename Values>
  static Point PointOf(std::vector<double> latencies_s, const Values& values) {
    const size_t n = latencies_s.size();
    const double value = values[0];
    std::vector<double> slopes(n);
    for (size_t i = 0; i < n; ++i) {
      const double fall = value - values[static_cast<int>(i) + 1];
      slopes[i] = std::max(0.0, fall / (kShorter * latencies_s[i]));
    }
    if (std::ranges::all_of(slopes, [](double slope) { return slope == 0; })) {
      const double fall = value - values[static_cast<int>(n) + 1];
      const double sum_s = std::accumulate(latencies_s.begin(), latencies_s.end(), 0.0);
      std::ranges::fill(slopes, std::max(0.0, fall / (kShorter * sum_s)));
    }
    return {std::move(latencies_s), value, std::move(slopes)};
  }

  ServedSearch& search_;
  const double target_s_;
  std::deque<Point> points_;  // the newest first
};

}  // namespace

search::Objective MakeServedObjective(ServedSearch& search, double target_s) {
  const auto objective = std::make_shared<ServedObjective>(search, target_s);
  return {
      [objective](std::span<const double> latencies_s) { return objective->Value(latencies_s); },
      [objective](std::span<const double> latencies_s) { return objective->Slopes(latencies_s); }};
}

}  // namespace kiln::scheduler
