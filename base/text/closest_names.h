// Suggestions for a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Returns at most three of `names` that are near `name`, nearest first. A name is near if it has
// `name` as a part, or if at most two letters or a third of them differ.
std::vector<std::string> ClosestNames(std::string_view name, const std::vector<std::string>& names);

// Returns ", did you mean conv2d_nchw or conv2d_nhwc?", or "" if no name is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace kiln
