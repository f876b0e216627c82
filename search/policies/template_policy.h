// Searches the configuration space of a template: a tuner (search/templates/tuners) chooses the
// points, which become candidates here. Configurations that a device cannot run, or that the
// template refuses, are told to the tuner as failed and are not proposed; those whose steps have
// been measured already are told with that result. A result of an earlier run or job is told at once
// where its origin says which point it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "search/policies/policy.h"
#include "search/templates/point_origin.h"
#include "search/templates/template.h"
#include "search/templates/tuners/config_tuner.h"

namespace kiln::search {

extern const PolicyKind kTemplateXgb, kTemplateGenetic, kTemplateCoordinate, kTemplateRandom,
    kTemplateGrid;

class TemplatePolicy final : public Policy {
 public:
  using MakeTuner = std::function<std::unique_ptr<ConfigTuner>(const ConfigSpace& space)>;

  // `task` outlives it. The template can schedule the task's computation.
  TemplatePolicy(const Task& task, const Parameters& parameters, TemplatePtr schedule_template,
                 const MakeTuner& make_tuner);

  StatusOr<std::vector<Candidate>> Propose(int n) override;
  void Observe(std::span<const Observation> observations) override;
  void Avoid(std::span<const uint64_t> hashes) override {
    avoided_.insert(hashes.begin(), hashes.end());
  }
  const RoundReport& last_round() const override { return report_; }

  const ConfigSpace& space() const { return space_; }

 private:
  PointOrigin OriginOf(int64_t index, bool is_kernel) const;
  // Puts the point and the reason in the report, and tells the tuner.
  void Refuse(int64_t index, Drop drop, const Status& why);
  // What a point is, if a device can run it; the reason why not is in the report.
  std::optional<Candidate> MakeCandidate(int64_t index);
  // Which point a candidate of an earlier search is, as its origin says, if the template still makes
  // its steps of it.
  std::optional<int64_t> IndexOf(const Candidate& candidate) const;
  void Tell(int64_t index, std::optional<double> cost_s);

  const Task& task_;
  const int max_rejected_draws_;
  const TemplatePtr template_;
  const ConfigSpace space_;
  const std::unique_ptr<ConfigTuner> tuner_;
  // Several configurations may have the same steps, and so the same hash.
  std::unordered_map<uint64_t, std::vector<int64_t>> indices_;   // of what was proposed
  std::unordered_map<uint64_t, std::optional<double>> costs_s_;  // of what was observed
  std::unordered_set<uint64_t> avoided_;
  bool found_any_ = false;  // anything that can be run
  RoundReport report_;
};

}  // namespace kiln::search
