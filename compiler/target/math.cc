#include "compiler/target/math.h"

namespace kiln::target {

bool AllowsTf32(const Target& target) { return target.Option(kMath) == kTf32; }

}  // namespace kiln::target
