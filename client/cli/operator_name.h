// Names of operators and networks as users write them.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

// The operator of that name in that layout: "conv2d" and "nhwc" give "conv2d_nhwc", "" leaves the
// name as it is. NotFound: there is none, with what may be meant, networks included;
// InvalidArgument: the name says another layout, or the operator does not have this one.
StatusOr<std::string> OperatorOf(std::string_view name, std::string_view layout);

// ", did you mean network:resnet-18 or conv2d_nchw?": operators and networks with names like this
// one; "" where there is none.
std::string DidYouMeanOperator(std::string_view name);

// ", did you mean network:resnet-18?", of networks alone.
std::string DidYouMeanNetwork(std::string_view name);

}  // namespace kiln::client
