// Resolves names of operators and networks as users write them.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

// Returns the operator of the name in the layout: "conv2d" and "nhwc" give "conv2d_nhwc"; "" leaves
// the name unchanged. NotFound: there is none; the message suggests operators and networks.
// InvalidArgument: the name has another layout, or the operator does not have this layout.
StatusOr<std::string> OperatorOf(std::string_view name, std::string_view layout);

// Returns ", did you mean network:resnet-18 or conv2d_nchw?" with operators and networks of similar
// names; "" if there is none.
std::string DidYouMeanOperator(std::string_view name);

// Returns ", did you mean network:resnet-18?" with networks alone.
std::string DidYouMeanNetwork(std::string_view name);

}  // namespace kiln::client
