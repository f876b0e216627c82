// Compares the canary times of devices of one model (docs/device-state.md). Devices of one model
// measure alike if their canaries take about the same time.
//
// Pure functions. Times are seconds; 0 stands for a canary that was not timed.
#pragma once

#include <span>
#include <vector>

namespace kiln::device {

// The interval in which the canary of a device that is well stays is half this wide at least, so
// two GPUs may differ by this share and be alike. CPUs share their machines with other programs.
inline constexpr double kUnlikeGpuShare = 0.08;
inline constexpr double kUnlikeCpuShare = 0.25;

// Returns the usual time of the devices: the median, or of two medians the smaller one, since a
// device is more likely to be slow than fast. 0: none was timed.
double UsualCanary(std::span<const double> canaries_s);

// Returns for each device whether its time differs from the usual one by more than this share.
std::vector<bool> UnlikeCanaries(std::span<const double> canaries_s, double share);

}  // namespace kiln::device
