#include "rpc/worker_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kiln {
namespace {

struct Row {
  v1::WorkerMode mode;
  std::string_view name;
};

// The order of strictness.
constexpr std::array kOrder = {
    Row{v1::WORKER_SERVES, "serves"}, Row{v1::WORKER_CORDONED, "cordoned"},
    Row{v1::WORKER_DRAINS, "drains"}, Row{v1::WORKER_QUARANTINED, "quarantined"},
    Row{v1::WORKER_PAUSED, "paused"},
};

const Row& RowOf(v1::WorkerMode mode) {
  const auto row =
      std::ranges::find_if(kOrder, [mode](const Row& known) { return known.mode == mode; });
  return row == kOrder.end() ? RowOf(v1::WORKER_DRAINS) : *row;
}

}  // namespace

int StrictnessOf(v1::WorkerMode mode) { return static_cast<int>(&RowOf(mode) - kOrder.data()); }

bool TakesNewLeases(v1::WorkerMode mode) { return mode == v1::WORKER_SERVES; }

bool GivesLeasesBack(v1::WorkerMode mode) {
  return StrictnessOf(mode) >= StrictnessOf(v1::WORKER_DRAINS);
}

bool RefusesTrials(v1::WorkerMode mode) {
  return StrictnessOf(mode) >= StrictnessOf(v1::WORKER_QUARANTINED);
}

bool StopsTrials(v1::WorkerMode mode) {
  return StrictnessOf(mode) >= StrictnessOf(v1::WORKER_PAUSED);
}

std::string_view ModeName(v1::WorkerMode mode) { return RowOf(mode).name; }

EffectiveMode AskedMode(v1::WorkerMode mode, std::string_view by) {
  if (mode == v1::WORKER_SERVES) return {};
  const std::string_view verb = mode == v1::WORKER_DRAINS ? "drained" : ModeName(mode);
  return {mode, fmt::format("{} by {}", verb, by.empty() ? "an operator" : by)};
}

const EffectiveMode& StricterOf(const EffectiveMode& a, const EffectiveMode& b) {
  return StrictnessOf(b.mode) > StrictnessOf(a.mode) ? b : a;
}

// ---- the modes of one worker ----------------------------------------------------------------

const EffectiveMode& WorkerModes::Strictest() const {
  const EffectiveMode* strictest = &asked_;
  for (const auto& [name, condition] : conditions_) {
    const bool says_more = strictest->sentence.empty() &&
                           StrictnessOf(strictest->mode) == StrictnessOf(condition.mode);
    strictest = says_more ? &condition : &StricterOf(*strictest, condition);
  }
  return *strictest;
}

void WorkerModes::Change(const std::function<void()>& change) {
  std::lock_guard callbacks_lock(callbacks_mutex_);
  {
    std::lock_guard lock(mutex_);
    const EffectiveMode before = Strictest();
    change();
    if (Strictest() == before) return;
  }
  for (const auto& [id, changed] : callbacks_) changed();
}

void WorkerModes::Set(std::string condition, v1::WorkerMode mode, std::string sentence) {
  Change([&] { conditions_[std::move(condition)] = {mode, std::move(sentence)}; });
}

void WorkerModes::Clear(std::string_view condition) {
  Change([&] {
    const auto it = conditions_.find(condition);
    if (it != conditions_.end()) conditions_.erase(it);
  });
}

void WorkerModes::Ask(v1::WorkerMode mode, std::string by) {
  Change([&] {
    asked_ = AskedMode(mode, by);
    asked_mode_ = mode;
    asked_by_ = std::move(by);
  });
}

EffectiveMode WorkerModes::Effective() const {
  std::lock_guard lock(mutex_);
  return Strictest();
}

void WorkerModes::Fill(v1::WorkerState* state) const {
  std::lock_guard lock(mutex_);
  const EffectiveMode& now = Strictest();
  state->set_mode(now.mode);
  state->set_mode_reason(now.sentence);
  state->set_asked_mode(asked_mode_);
  state->set_asked_by(asked_by_);
}

WorkerModes::Subscription WorkerModes::Subscribe(std::function<void()> changed) {
  std::lock_guard lock(callbacks_mutex_);
  callbacks_[++callback_ids_] = std::move(changed);
  return Subscription(this, callback_ids_);
}

void WorkerModes::Unsubscribe(int id) {
  std::lock_guard lock(callbacks_mutex_);
  callbacks_.erase(id);
}

WorkerModes::Subscription::Subscription(Subscription&& other) noexcept
    : modes_(std::exchange(other.modes_, nullptr)), id_(other.id_) {}

WorkerModes::Subscription& WorkerModes::Subscription::operator=(Subscription&& other) noexcept {
  std::swap(modes_, other.modes_);
  std::swap(id_, other.id_);
  return *this;
}

WorkerModes::Subscription::~Subscription() {
  if (modes_ != nullptr) modes_->Unsubscribe(id_);
}

}  // namespace kiln
