#include <string_view>

#include "builder/child.h"
#include "builder/daemon.h"

int main(int argc, char** argv) {
  const bool child = argc > 1 && std::string_view(argv[1]) == "--child";
  return child ? kiln::builder::BuilderChildMain(argc - 1, argv + 1)
               : kiln::builder::BuilderMain(argc, argv);
}
