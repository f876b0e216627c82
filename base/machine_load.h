// How busy this machine is, by what Linux says: whatever runs on it besides.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// Seconds of all cores since the machine began, in the unit of /proc/stat.
struct CpuTimes {
  double busy = 0;    // of programs and the system
  double stolen = 0;  // that a hypervisor gave to other machines
  double all = 0;
};

// The text is that of /proc/stat. InvalidArgument: it has no line of all cores.
StatusOr<CpuTimes> ParseCpuTimes(std::string_view proc_stat);
StatusOr<CpuTimes> ReadCpuTimes();

// Shares of all cores between two of them, the earlier one first; 0 where no time has passed.
double BusyShare(const CpuTimes& before, const CpuTimes& after);
double StolenShare(const CpuTimes& before, const CpuTimes& after);

// "load 7.1 on 2 cores", and where that is much, "12% of them stolen" since the machine began; "":
// not known.
std::string LoadText();

}  // namespace kiln
