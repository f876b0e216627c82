#include "scheduler/dispatch/worker_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "compiler/target/target.h"
#include "scheduler/values/messages.h"
#include "store/plausible_cost.h"

namespace kiln::scheduler {
namespace {

// A runner may take more readings than `repeat` while the device would be idle (runner/timing.h).
constexpr int kMaxIdleReadings = 100;
constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxNameBytes = 256;

int MaxReadings(const v1::MeasureOptions& options) {
  const int asked = static_cast<int>(std::clamp<uint32_t>(options.repeat(), 1, 1 << 20));
  return options.idle_ms() > 0 ? std::max(asked, kMaxIdleReadings) : asked;
}

bool IsTime(double seconds, double limit_s) {
  return std::isfinite(seconds) && seconds >= 0 && seconds <= limit_s;
}

// Returns name and value of the first figure that cannot be the time of a part of the call, or "".
std::string BadTime(const v1::TrialTimes& times, double limit_s) {
  const google::protobuf::Reflection& reflection = *times.GetReflection();
  const google::protobuf::Descriptor& fields = *v1::TrialTimes::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *fields.field(i);
    const double seconds = reflection.GetDouble(times, &field);
    if (!IsTime(seconds, limit_s)) return fmt::format("{} of {} s", field.name(), seconds);
  }
  return "";
}

// Returns the reason why the reply is impossible, or "".
std::string Defect(const v1::MeasureRequest& request, double limit_s,
                   const v1::MeasureReply& reply) {
  const v1::TrialResult& result = reply.result();
  if (result.error() < 0 || result.error() >= store::kNumErrorKinds) {
    return fmt::format("error kind {}, which is unknown", static_cast<int>(result.error()));
  }
  const int most = MaxReadings(request.options());
  if (result.costs_s_size() > most) {
    return fmt::format("{} costs, expected at most {}", result.costs_s_size(), most);
  }
  for (const double cost_s : result.costs_s()) {
    if (cost_s > limit_s) return fmt::format("a cost of {} s", cost_s);
  }
  if (!std::isfinite(result.max_error()) || result.max_error() < 0) {
    return fmt::format("a largest error of {}", result.max_error());
  }
  if (!IsTime(result.run_s(), limit_s)) return fmt::format("a run of {} s", result.run_s());
  if (!IsTime(reply.reference_cost_s(), limit_s)) {
    return fmt::format("a reference of {} s", reply.reference_cost_s());
  }
  if (request.samples().empty() && result.sampled_outputs() > 0) {
    return fmt::format("a sample of {} elements, expected all outputs", result.sampled_outputs());
  }
  return BadTime(result.times(), limit_s);
}

// Turns costs next to nothing into an error. SetResult (messages.h) has one for costs of zero and
// less. Made-up costs keep to the floor, too.
void RefuseShortCosts(v1::MeasureReply& reply) {
  for (const double cost_s : reply.result().costs_s()) {
    if (cost_s <= 0 || cost_s >= store::kShortestCost_s) continue;
    v1::TrialResult& result = *reply.mutable_result();
    result.Clear();
    result.set_error(v1::UNKNOWN_ERROR);
    result.set_message(fmt::format("a cost {:g} s is not plausible: expected at least {:g} s",
                                   cost_s, store::kShortestCost_s));
    return reply.clear_reference_cost_s();
  }
}

}  // namespace

Status BoundReply(const v1::MeasureRequest& request, std::chrono::milliseconds limit,
                  v1::MeasureReply& reply) {
  if (!reply.has_result()) return {};
  reply.DiscardUnknownFields();
  const double limit_s = 1e-3 * static_cast<double>(limit.count());
  // A result that failed keeps no costs.
  if (reply.result().error() != v1::NO_ERROR) reply.mutable_result()->clear_costs_s();
  const std::string defect = Defect(request, limit_s, reply);
  if (!defect.empty()) return DataLoss("the runner answered {}", defect);
  RefuseShortCosts(reply);
  v1::TrialResult& result = *reply.mutable_result();
  result.set_message(CutText(result.message(), kMaxTextBytes));
  result.set_unchecked(CutText(result.unchecked(), kMaxTextBytes));
  result.set_device(CutText(result.device(), kMaxNameBytes));
  result.set_runner(CutText(result.runner(), kMaxNameBytes));
  result.set_builder(CutText(result.builder(), kMaxNameBytes));
  // Only the scheduler sets these fields.
  result.clear_remeasured_costs_s();
  result.clear_remeasured_device();
  return {};
}

Status CheckReportedCosts(const store::Record& record) {
  const auto target = target::ParseTarget(record.target);
  const bool made_up = target.ok() && !target->kind->runs_programs;
  return made_up ? store::CheckNotTooShort(record)
                 : store::CheckPlausible(record, record.flop_count);
}

void BoundReply(std::chrono::milliseconds limit, v1::BuildReply& reply) {
  const double limit_s = 1e-3 * static_cast<double>(limit.count());
  reply.DiscardUnknownFields();
  if (!IsTime(reply.build_s(), limit_s)) reply.clear_build_s();
  if (!BadTime(reply.times(), limit_s).empty()) reply.clear_times();
  reply.set_message(CutText(reply.message(), kMaxTextBytes));
}

}  // namespace kiln::scheduler
