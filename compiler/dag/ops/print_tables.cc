// Prints the operator tables of docs/operators.md.
#include <cstdio>

#include "compiler/dag/ops/registry.h"

int main() {
  std::fputs(kiln::dag::OperatorTables().c_str(), stdout);
  return 0;
}
