// The sketch rules, one factory each. CpuSketchRules and GpuSketchRules (search/sketch.h) say which
// apply in which order; what differs between devices a rule asks the task's target.
#pragma once

#include <memory>

#include "search/sketch.h"

namespace kiln::search {

using SketchRulePtr = std::unique_ptr<SketchRule>;
using NextStates = std::vector<std::pair<schedule::State, int>>;

// inline.cc: where stages without tiles of their own are computed.
SketchRulePtr AlwaysInlineRule();
SketchRulePtr SpecialComputeLocationRule();  // GPU

// const_tensor.cc: small products with constant matrices, as in Winograd's method.
SketchRulePtr SimplifyConstTensorRule();

// rfactor.cc, cross_thread.cc: more parallelism for reductions.
SketchRulePtr RfactorRule();               // CPU
SketchRulePtr CrossThreadReductionRule();  // GPU

// cache.cc: tiles of inputs in shared memory, tiles of results in registers.
SketchRulePtr CacheReadRule();  // GPU
SketchRulePtr CacheWriteRule();

// tiling.cc
SketchRulePtr TilingWithFusionRule();
SketchRulePtr TilingRule();
SketchRulePtr SkipStageRule();

}  // namespace kiln::search
