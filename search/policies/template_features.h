// What the model of template.xgb sees of a point: the values of its knobs, and with the parameters
// template_curve_features and template_itervar_features also what its program is like, for which it
// is lowered. ("knob", "curve" and "itervar" in autotvm, which adds the values of options alone to
// the last two. Here all knobs are beside them: loops of one iteration are none, so the places of
// others in a row vary.)
//
// Knob values alone say nothing of another computation: the same tile is a large part of one and a
// small part of another. With curves or loops beside them a model learns from one for another.
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
  bool curves = false, loops = false;  // beside the values of the knobs

  // Do rows of several computations teach about each other?
  bool carries_over() const { return curves || loops; }
};
FeatureChoice FeaturesOf(const Parameters& parameters);

// Of a configuration of the template's space for the task. Empty: it makes no program. A kernel that
// a person wrote has its knobs only: its loops are not known.
std::vector<float> FeaturesOfPoint(const FeatureChoice& choice, const Template& schedule_template,
                                   const Task& task, const Config& config);
// Of the point that this instance is.
std::vector<float> FeaturesOfInstance(const FeatureChoice& choice, const Task& task,
                                      const Config& config, const Instance& instance);

// InvalidArgument: template_history is asked for by name, with features that do not carry over.
Status CheckHistoryFeatures(const std::map<std::string, double>& given);

}  // namespace kiln::search
