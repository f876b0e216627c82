// What a mistyped word may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// At most three of `names` that are near `name`, nearest first: a third of its letters differ, or
// two, or it is a part of them.
std::vector<std::string> ClosestNames(std::string_view name, const std::vector<std::string>& names);

// ", did you mean conv2d_nchw or conv2d_nhwc?"; "" where nothing is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace kiln
