// The features of a point for the model of template.xgb: the values of its knobs, and with the
// parameters template_curve_features and template_itervar_features also features of its program,
// which is lowered for them. (autotvm calls these features "knob", "curve" and "itervar", and adds
// only the values of options to the last two. Here all knobs are added: loops of one iteration have
// no features, so the features of the other loops change their places in a row.)
//
// Knob values alone say nothing about another computation: the same tile is a large part of one and
// a small part of another. With features of curves or loops, a model learns from one computation
// for another.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "search/space/parameters.h"
#include "search/space/task.h"
#include "search/templates/template.h"

namespace kiln::search {

struct FeatureChoice {
  bool curves = false, loops = false;  // features besides the values of the knobs

  // Tells whether rows of several computations teach about each other.
  bool carries_over() const { return curves || loops; }
};
FeatureChoice FeaturesOf(const Parameters& parameters);

// Returns the features of a configuration of the template's space for the task. Empty if it makes
// no program. A hand-written kernel has features of its knobs only, because its loops are not
// known.
std::vector<float> FeaturesOfPoint(const FeatureChoice& choice, const Template& schedule_template,
                                   const Task& task, const Config& config);
// Returns the features of the point that `config` and `instance` describe.
std::vector<float> FeaturesOfInstance(const FeatureChoice& choice, const Task& task,
                                      const Config& config, const Instance& instance);

// InvalidArgument if template_history is asked for by name, with features that do not carry over.
Status CheckHistoryFeatures(const std::map<std::string, double>& given);

}  // namespace kiln::search
