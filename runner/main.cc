#include <string_view>

#include "runner/child.h"
#include "runner/daemon.h"

int main(int argc, char** argv) {
  const bool child = argc > 1 && std::string_view(argv[1]) == "--child";
  return child ? kiln::runner::RunnerChildMain(argc - 1, argv + 1)
               : kiln::runner::RunnerMain(argc, argv);
}
