#include "tracker/figures.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text/utf8.h"
#include "rpc/worker_modes.h"

namespace kiln::tracker {
namespace {

// Rows of keys that are shown. Workers may announce what they like.
constexpr int kMostKeys = 200;

std::string KindName(v1::WorkerKind kind) { return kind == v1::BUILDER ? "builder" : "runner"; }

struct OfKind {
  std::map<std::string, int> by_mode;
  double slots = 0, busy = 0;
};

void CollectWorkers(const v1::ListReply& list, MetricSheet& sheet) {
  std::map<std::string, OfKind> kinds;
  for (const v1::WorkerKind kind : {v1::BUILDER, v1::RUNNER}) {
    for (int mode = v1::WorkerMode_MIN; mode <= v1::WorkerMode_MAX; ++mode) {
      kinds[KindName(kind)].by_mode[std::string(ModeName(static_cast<v1::WorkerMode>(mode)))] = 0;
    }
  }
  for (int i = 0; i < list.workers_size(); ++i) {
    const v1::WorkerState& worker = list.workers(i);
    OfKind& of_kind = kinds[KindName(worker.kind())];
    ++of_kind.by_mode[std::string(ModeName(worker.mode()))];
    of_kind.slots += worker.slots();
    if (i < list.busy_slots_size()) of_kind.busy += list.busy_slots(i);
  }
  for (const auto& [kind, of_kind] : kinds) {
    for (const auto& [mode, count] : of_kind.by_mode) {
      sheet.Gauge("kiln_tracker_workers", "Workers that announce themselves, by mode.", count,
                  {{"kind", kind}, {"mode", mode}});
    }
    sheet.Gauge("kiln_tracker_slots", "Slots of the workers.", of_kind.slots, {{"kind", kind}});
    sheet.Gauge("kiln_tracker_slots_leased", "Slots that schedulers have.", of_kind.busy,
                {{"kind", kind}});
  }
}

}  // namespace

void CollectRegistry(const v1::ListReply& list, const Registry::Totals& totals,
                     MetricSheet& sheet) {
  CollectWorkers(list, sheet);
  int rows = 0;
  for (const v1::KeyState& key : list.keys()) {
    if (key.pending() == 0 || ++rows > kMostKeys) continue;
    sheet.Gauge("kiln_tracker_requests_waiting", "Requests for a slot that wait, by their key.",
                key.pending(), {{"kind", KindName(key.kind())}, {"key", key.key()}});
  }
  sheet.Counter("kiln_tracker_leases_granted_total", "Leases that were granted.",
                static_cast<double>(totals.leases_granted));
  sheet.Counter("kiln_tracker_leases_lost_total",
                "Leases that ended because their worker was gone.",
                static_cast<double>(totals.leases_lost));
  sheet.Counter("kiln_tracker_workers_lost_total",
                "Workers that fell silent, or whose address another one took.",
                static_cast<double>(totals.workers_lost));
}

std::string DiscoveryText(const v1::ListReply& list, const std::string& own_address) {
  nlohmann::json targets = nlohmann::json::array();
  std::set<std::string> seen;
  const auto add = [&](const std::string& address, const std::string& service,
                       const std::string& worker) {
    if (address.empty() || !seen.insert(address).second) return;
    nlohmann::json labels = {{"service", service}};
    if (!worker.empty()) labels["worker"] = OneLine(worker);
    targets.push_back({{"targets", {OneLine(address)}}, {"labels", labels}});
  };
  add(own_address, "tracker", "");
  for (const v1::WorkerState& worker : list.workers()) {
    add(worker.http_address(), KindName(worker.kind()), worker.id());
  }
  return targets.dump() + "\n";
}

}  // namespace kiln::tracker
