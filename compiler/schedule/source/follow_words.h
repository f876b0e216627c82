// Words of splits that follow other splits, in a schedule that is source.
#pragma once

#include <string_view>

namespace kiln::schedule {

inline constexpr std::string_view kFollowFactor = "follow_factor", kFollowNparts = "follow_nparts";

}  // namespace kiln::schedule
