// Random numbers of the kernel under the name that libstdc++.a calls. Debian's archive calls
// arc4random, which glibc has since 2.36. A program that defines it runs with glibc 2.35 as well,
// which is Ubuntu 22.04's.
#include <sys/random.h>

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // The kernel gives so few bytes whole, once it has any. A signal may come before that.
  while (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
  }
  return value;
}
