#include "search/templates/config_space.h"

#include <algorithm>

#include "base/numbers/integers.h"

namespace kiln::search {
namespace {

constexpr size_t kMaxKnobs = 64;
constexpr int64_t kMaxPoints = int64_t{1} << 62;
constexpr int64_t kMaxCounted = int64_t{1} << 25;
constexpr int64_t kSampledForEstimate = 1 << 18;
constexpr int kMaxRejectedDraws = 10'000;

}  // namespace

const Entity* Config::Find(std::string_view knob) const {
  for (const auto& [name, entity] : entities) {
    if (name == knob) return &entity;
  }
  return nullptr;
}

Status ConfigSpace::Add(Knob knob) {
  if (Find(knob.name()) >= 0) return InvalidArgument("knob {} is defined twice", knob.name());
  if (knobs_.size() == kMaxKnobs)
    return InvalidArgument("knob {} is one of more than {}", knob.name(), kMaxKnobs);
  int64_t values = knob.size();
  for (const Knob& other : knobs_) values += other.size();
  if (values > kMaxKnobEntities)
    return InvalidArgument("with knob {} the knobs have {} values, expected at most {}",
                           knob.name(), values, kMaxKnobEntities);
  const int64_t range = MultiplyCounts(range_, knob.size());
  if (range > kMaxPoints)
    return InvalidArgument("with knob {} the space has more than 2^62 points", knob.name());
  range_ = range;
  knobs_.push_back(std::move(knob));
  return OkStatus();
}

Status ConfigSpace::Add(StatusOr<Knob> knob) {
  return knob.ok() ? Add(*std::move(knob)) : knob.status();
}

int ConfigSpace::Find(std::string_view knob) const {
  const auto found = std::ranges::find(knobs_, knob, &Knob::name);
  return found == knobs_.end() ? -1 : static_cast<int>(found - knobs_.begin());
}

ValidCount ConfigSpace::CountValid() const {
  if (filters_.empty()) return {range_, true};
  ValidCount valid;
  if (range_ <= kMaxCounted) {
    for (int64_t index = 0; index < range_; ++index) valid.count += IsValid(index) ? 1 : 0;
    return valid;
  }
  Rng rng(1);
  int64_t hits = 0;
  for (int64_t i = 0; i < kSampledForEstimate; ++i) hits += IsValid(UniformInt(rng, range_));
  const double share = static_cast<double>(hits) / kSampledForEstimate;
  return {static_cast<int64_t>(share * static_cast<double>(range_)), false};
}

std::vector<int> ConfigSpace::Digits(int64_t index) const {
  std::vector<int> digits;
  for (const Knob& knob : knobs_) {
    digits.push_back(static_cast<int>(index % knob.size()));
    index /= knob.size();
  }
  return digits;
}

int64_t ConfigSpace::Index(std::span<const int> digits) const {
  int64_t index = 0;
  for (size_t i = knobs_.size(); i-- > 0;) index = index * knobs_[i].size() + digits[i];
  return index;
}

bool ConfigSpace::IsValid(int64_t index) const {
  if (filters_.empty()) return true;
  std::vector<const Entity*> entities;
  entities.reserve(knobs_.size());
  for (const Knob& knob : knobs_) {
    entities.push_back(&knob.entities()[static_cast<size_t>(index % knob.size())]);
    index /= knob.size();
  }
  return std::ranges::all_of(filters_, [&](const Filter& filter) { return filter(entities); });
}

Config ConfigSpace::Get(int64_t index) const {
  KILN_CHECK(index >= 0 && index < range_, "index {} of {} configurations", index, range_);
  Config config{index, {}};
  const std::vector<int> digits = Digits(index);
  for (size_t i = 0; i < knobs_.size(); ++i)
    config.entities.emplace_back(knobs_[i].name(),
                                 knobs_[i].entities()[static_cast<size_t>(digits[i])]);
  return config;
}

StatusOr<int64_t> ConfigSpace::IndexOf(std::span<const NamedEntity> entities) const {
  std::vector<int> digits(knobs_.size(), -1);
  for (const auto& [name, entity] : entities) {
    const int knob = Find(name);
    if (knob < 0) return NotFound("the space has no knob {}", name);
    const std::vector<Entity>& values = knobs_[static_cast<size_t>(knob)].entities();
    const auto found = std::ranges::find(values, entity);
    if (found == values.end())
      return NotFound("knob {} has no value {}", name, PrintEntity(entity));
    digits[static_cast<size_t>(knob)] = static_cast<int>(found - values.begin());
  }
  const auto missing = std::ranges::find(digits, -1);
  if (missing != digits.end())
    return NotFound("knob {} has no value given",
                    knobs_[static_cast<size_t>(missing - digits.begin())].name());
  return Index(digits);
}

std::optional<int64_t> ConfigSpace::Random(Rng& rng) const {
  for (int draw = 0; draw < kMaxRejectedDraws; ++draw) {
    const int64_t index = UniformInt(rng, range_);
    if (IsValid(index)) return index;
  }
  return std::nullopt;
}

int64_t ConfigSpace::RandomWalk(int64_t index, Rng& rng) const {
  if (range_ <= 1) return index;
  std::vector<int> digits = Digits(index);
  for (int draw = 0; draw < kMaxRejectedDraws; ++draw) {
    const auto knob = static_cast<size_t>(UniformInt(rng, std::ssize(knobs_)));
    digits[knob] = static_cast<int>(UniformInt(rng, knobs_[knob].size()));
    const int64_t next = Index(digits);
    if (next != index && IsValid(next)) return next;
  }
  return index;
}

std::string ConfigSpace::Print() const {
  const ValidCount valid = CountValid();
  std::string text =
      fmt::format("ConfigSpace (len={}{}", valid.is_exact ? "" : "about ", valid.count);
  if (has_filter()) text += fmt::format(", range_length={}", range_);
  text += ", space_map=\n";
  for (size_t i = 0; i < knobs_.size(); ++i)
    text += fmt::format("  {:2} {}: {}\n", i, knobs_[i].name(), knobs_[i].Description());
  return text + ")\n";
}

}  // namespace kiln::search
