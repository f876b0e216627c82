// The texts of the shipped templates.
#pragma once

#include <string_view>

namespace kiln::search {

extern const std::string_view kConv2dNchwDirectGpu, kConv2dNchwDirectCpu;
extern const std::string_view kConv2dNhwcGpu, kConv2dNhwcCpu;
extern const std::string_view kDepthwiseNchwGpu, kDepthwiseNchwCpu;
extern const std::string_view kDepthwiseNhwcGpu, kDepthwiseNhwcCpu;
extern const std::string_view kDenseGpu, kDenseCpu;
extern const std::string_view kBatchMatmulGpu, kBatchMatmulCpu;

}  // namespace kiln::search
