// Numbers for people: three or four significant digits and a unit. Machines do not read them back.
#pragma once

#include <cstdint>
#include <string>

namespace kiln {

// "1.234 ms", "10.50 us", "2.500 s"
std::string FormatSeconds(double seconds);
// "4.2 s", "3m 07s", "2h 05m"
std::string FormatElapsed(double seconds);
// "43.21 GFLOP/s"
std::string FormatFlops(double flops_per_second);
// "512 B", "1.50 MiB"
std::string FormatBytes(int64_t bytes);
// "1,234,567"
std::string FormatCount(int64_t count);

}  // namespace kiln
