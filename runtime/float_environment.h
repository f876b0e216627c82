// The floating-point environment of compiled programs: rounding to nearest, subnormal numbers as
// they are, no traps. A thread that calls a program may have another one: PyTorch's
// set_flush_denormal, fesetround and feenableexcept change it, and threads inherit it from the
// thread that starts them.
#pragma once

#include <cstdint>

namespace kiln::runtime {

// The calling thread has the programs' environment while this object lives, and its own one, with
// the flags that were raised, afterwards. Takes some nanoseconds.
class FloatEnvironment {
 public:
  FloatEnvironment() : before_(Read()) { Write(kDefault); }
  ~FloatEnvironment() { Write(before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  using Register = uint32_t;
  // MXCSR with all exceptions masked.
  static constexpr Register kDefault = 0x1f80;
  static Register Read() { return __builtin_ia32_stmxcsr(); }
  static void Write(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  // FPCR
  static constexpr Register kDefault = 0;
  static Register Read() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Write(Register value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using Register = int;
  static constexpr Register kDefault = 0;
  static Register Read() { return 0; }
  static void Write(Register) {}
#endif

  const Register before_;
};

}  // namespace kiln::runtime
