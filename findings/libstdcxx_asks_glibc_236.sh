#!/bin/bash
# Finding: a program or library that carries Debian 12's libstdc++.a asks for glibc 2.36, because of
# a random number generator that it never uses.
#
# With libstdc++.a a program runs where no libstdc++.so.6 is, and its age is meant to be that of the
# glibc functions it calls. A program whose only work is to append to a std::string asks for
# GLIBC_2.36 nonetheless. The exceptions of libstdc++ hold the old reference-counted string. The
# archive member with the instances of that string, cow-string-inst.o, also holds the constructor of
# std::random_device from such a string. That draws in random.o, which calls arc4random, and glibc
# has arc4random since 2.36. -Wl,--gc-sections drops it from a program, and keeps it in a shared
# library, in which every visible symbol is a root. One that defines arc4random itself asks for
# glibc 2.35, which Ubuntu 22.04 has.
#
# The script takes the archive from the Debian package libstdc++-12-dev 12.2.0-14+deb12u1, links a
# few lines with it in four ways, and prints the newest version of glibc that each asks for.
#
# Needs: Debian 12 on x86-64 with g++ 12, and Debian's mirror. No GPU. Ends with status 0 while the
# package behaves as stated.
set -euo pipefail
readonly PACKAGE=libstdc++-12-dev VERSION=12.2.0-14+deb12u1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download "$PACKAGE=$VERSION" >/dev/null
dpkg-deb -x "$PACKAGE"_*.deb package
archive=$(find package -name libstdc++.a)

cat >append.cc <<'CPP'
#include <cstdio>
#include <string>
extern "C" int append(const char* word) {
  std::string text(word);
  text += ".";
  return std::puts(text.c_str());
}
int main(int, char** argv) { return append(argv[0]) < 0; }
CPP
cat >own.cc <<'CPP'
#include <sys/random.h>

#include <cstdint>
extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t value = 0;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value)) {
  }
  return value;
}
CPP

# newest PROGRAM: the newest version of glibc among those that the program's symbols ask for.
newest() { objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1; }
link() { gcc-12 -O2 -std=c++20 -fPIC "$@" "$archive" -static-libgcc -lm; }
link -o program append.cc -Wl,-Map,program.map
link -o collected append.cc -Wl,--gc-sections
link -o library.so append.cc -Wl,--gc-sections -shared
link -o defined.so append.cc own.cc -Wl,--gc-sections -shared

drawn=$(grep -A1 -m1 -E '^[^ ]*\(random\.o\)' program.map | tr -s ' \n' ' ' | sed "s|$archive||g")
echo "$PACKAGE $VERSION: $drawn"
echo "program: $(newest program)"
echo "program, --gc-sections: $(newest collected)"
echo "library, --gc-sections: $(newest library.so)"
echo "library, --gc-sections, an arc4random of its own: $(newest defined.so)"
objdump -T program | grep -q 'GLIBC_2.36) arc4random'
[[ $drawn == *cow-string-inst.o*random_device* ]]
[[ "$(newest program) $(newest collected) $(newest library.so) $(newest defined.so)" == \
  "GLIBC_2.36 GLIBC_2.35 GLIBC_2.36 GLIBC_2.35" ]]
