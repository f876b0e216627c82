// Searches the configuration space of a template: a tuner (search/templates/tuners) chooses the
// points, and this policy makes candidates of them. Configurations that a device cannot run, or
// that the template refuses, are reported to the tuner as failed and are not proposed.
// Configurations whose steps have been measured already are reported with that result. A result of
// an earlier run or job is reported at once if its origin names its point.
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

  // `task` outlives the policy. The template can schedule the task's computation.
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
  // Puts the point and the reason into the report, and tells the tuner.
  void Refuse(int64_t index, Drop drop, const Status& why);
  // Returns the candidate of a point, if a device can run it. The report has the reason if not.
  std::optional<Candidate> MakeCandidate(int64_t index);
  // Returns the point that a candidate of an earlier search names in its origin, if the template
  // still makes the candidate's steps of it.
  std::optional<int64_t> IndexOf(const Candidate& candidate) const;
  void Tell(int64_t index, std::optional<double> cost_s);

  const Task& task_;
  const int max_rejected_draws_;
  const TemplatePtr template_;
  const ConfigSpace space_;
  const std::unique_ptr<ConfigTuner> tuner_;
  // Several configurations may have the same steps, and so the same hash.
  std::unordered_map<uint64_t, std::vector<int64_t>> indices_;   // points of proposed candidates
  std::unordered_map<uint64_t, std::optional<double>> costs_s_;  // costs of observed candidates
  std::unordered_set<uint64_t> avoided_;
  bool found_any_ = false;  // a configuration that can be run
  RoundReport report_;
};

}  // namespace kiln::search
