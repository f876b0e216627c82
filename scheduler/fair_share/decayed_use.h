// Device seconds that count the less, the longer ago they were: a second counts half after one
// half-life, as PriorityDecayHalfLife has it for the fair share of Slurm
// (https://slurm.schedmd.com/priority_multifactor.html; the default there is 7 days, too).
//
// Time in use counts as it goes by, and not when the use ends. Times are seconds of one clock.
#pragma once

namespace kiln::scheduler {

class DecayedUse {
 public:
  explicit DecayedUse(double half_life_s) : half_life_s_(half_life_s) {}

  // Begins with an earlier value, which was right at `at_s`.
  void Restore(double device_s, double at_s);
  // Lets time pass until `now_s`, with `devices` in use all the while. Time that runs backwards
  // stands still.
  void Advance(double now_s, int devices);
  // The value at the time of the last call.
  double device_s() const { return device_s_; }

 private:
  const double half_life_s_;
  double device_s_ = 0;
  double at_s_ = 0;
};

}  // namespace kiln::scheduler
