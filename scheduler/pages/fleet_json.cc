#include "scheduler/pages/fleet_json.h"

#include <algorithm>

#include "device/device_model.h"
#include "rpc/device_message.h"
#include "rpc/worker_modes.h"
#include "scheduler/words/format.h"

namespace kiln::scheduler {
namespace {

constexpr int kMostOfWorker = 100;

template <typename Texts>
Json TextsJson(const Texts& texts) {
  Json json = Json::array();
  for (const auto& text : texts) {
    if (json.size() < kMostOfWorker) json.push_back(Bounded(text));
  }
  return json;
}

Json StateJson(const v1::DeviceState& state) {
  Json json = Json::object();
  if (state.has_sm_clock_mhz()) json["sm_clock_mhz"] = state.sm_clock_mhz();
  if (state.has_cpu_mhz()) json["cpu_mhz"] = state.cpu_mhz();
  if (state.has_temperature_c()) json["temperature_c"] = state.temperature_c();
  if (state.has_power_w()) json["power_w"] = state.power_w();
  if (state.has_steal_share()) json["steal_share"] = state.steal_share();
  if (state.has_load()) json["load"] = state.load();
  json["throttle_reasons"] = TextsJson(state.throttle_reasons());
  json["driver"] = Bounded(state.driver());
  return json;
}

Json DriftsJson(const v1::WorkerState& worker) {
  Json drifts = Json::array();
  for (const v1::DriftSpan& drift : worker.drifts()) {
    if (drifts.size() == kMostOfWorker) break;
    Json one;
    one["from_s"] = drift.from_s();
    one["to_s"] = drift.to_s();
    one["reason"] = Bounded(drift.reason());
    drifts.push_back(std::move(one));
  }
  return drifts;
}

Json WorkerJson(const v1::WorkerState& worker, uint32_t busy) {
  Json json;
  json["id"] = Bounded(worker.id());
  json["kind"] = WorkerKindName(worker.kind());
  json["address"] = Bounded(worker.address());
  json["device"] = Bounded(worker.device());
  json["keys"] = TextsJson(worker.keys());
  json["slots"] = worker.slots();
  json["busy"] = busy;
  json["trials_done"] = worker.trials_done();
  json["version"] = Bounded(worker.version());
  json["mode"] = ModeName(worker.mode());
  json["mode_reason"] = Bounded(worker.mode_reason());
  json["asked_by"] = Bounded(worker.asked_by());
  json["state"] = worker.has_device_state() ? StateJson(worker.device_state()) : Json();
  json["canary_s"] = worker.canary_s();
  json["drifts"] = DriftsJson(worker);
  json["sandbox"] = TextsJson(worker.sandbox());
  json["sandbox_gaps"] = TextsJson(worker.sandbox_gaps());
  const auto model = DeviceModelOf(worker.device_model());
  json["device_summary"] =
      worker.kind() == v1::RUNNER && model.ok() ? device::DeviceSummary(*model) : "";
  return json;
}

}  // namespace

Json FleetJson(const v1::ListReply& reply) {
  Json fleet;
  fleet["workers"] = Json::array();
  for (int i = 0; i < std::min(reply.workers_size(), kMostWorkers); ++i) {
    const uint32_t busy = i < reply.busy_slots_size() ? reply.busy_slots(i) : 0;
    fleet["workers"].push_back(WorkerJson(reply.workers(i), busy));
  }
  fleet["keys"] = Json::array();
  for (int i = 0; i < std::min(reply.keys_size(), kMostKeys); ++i) {
    const v1::KeyState& key = reply.keys(i);
    Json one;
    one["key"] = Bounded(key.key());
    one["kind"] = WorkerKindName(key.kind());
    one["total"] = key.total();
    one["free"] = key.free();
    one["pending"] = key.pending();
    fleet["keys"].push_back(std::move(one));
  }
  fleet["more"] = reply.workers_size() > kMostWorkers || reply.keys_size() > kMostKeys;
  return fleet;
}

}  // namespace kiln::scheduler
