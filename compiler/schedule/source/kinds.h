// The forms of the kinds of steps in a schedule that is source (docs/schedules.md). Each kind is
// printed by its PrintSource. The functions below read the primitives back, one function for each
// word. They are defined in <kind>.cc, beside this file.
#pragma once

#include "base/status.h"
#include "compiler/schedule/source/printer.h"
#include "compiler/schedule/source/source_call.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

void PrintSource(const AnnotateStep& step, SourcePrinter& out);
void PrintSource(const FuseStep& step, SourcePrinter& out);
void PrintSource(const PragmaStep& step, SourcePrinter& out);
void PrintSource(const ReorderStep& step, SourcePrinter& out);
void PrintSource(const SplitStep& step, SourcePrinter& out);
void PrintSource(const FollowSplitStep& step, SourcePrinter& out);
void PrintSource(const FollowFusedSplitStep& step, SourcePrinter& out);
void PrintSource(const StorageAlignStep& step, SourcePrinter& out);
void PrintSource(const ComputeAtStep& step, SourcePrinter& out);
void PrintSource(const ComputeInlineStep& step, SourcePrinter& out);
void PrintSource(const ComputeRootStep& step, SourcePrinter& out);
void PrintSource(const CacheReadStep& step, SourcePrinter& out);
void PrintSource(const CacheWriteStep& step, SourcePrinter& out);
void PrintSource(const RfactorStep& step, SourcePrinter& out);
void PrintSource(const BufferingStep& step, SourcePrinter& out);
void PrintSource(const LayoutStep& step, SourcePrinter& out);
void PrintSource(const MergeAxesStep& step, SourcePrinter& out);
void PrintSource(const MoveStageStep& step, SourcePrinter& out);
void PrintSource(const OnlineSoftmaxStep& step, SourcePrinter& out);

// Reads SP, FSP or FFSP, depending on the arguments.
StatusOr<StepPtr> ReadSplit(SourceCall& call);
StatusOr<StepPtr> ReadFuse(SourceCall& call);
StatusOr<StepPtr> ReadReorder(SourceCall& call);
// Read AN steps: each annotation that is a word by itself, and bind.
StatusOr<StepPtr> ReadUnroll(SourceCall& call);
StatusOr<StepPtr> ReadVectorize(SourceCall& call);
StatusOr<StepPtr> ReadParallel(SourceCall& call);
StatusOr<StepPtr> ReadTensorize(SourceCall& call);
StatusOr<StepPtr> ReadBind(SourceCall& call);
StatusOr<StepPtr> ReadPragma(SourceCall& call);
StatusOr<StepPtr> ReadStorageAlign(SourceCall& call);
StatusOr<StepPtr> ReadComputeAt(SourceCall& call);
StatusOr<StepPtr> ReadComputeInline(SourceCall& call);
StatusOr<StepPtr> ReadComputeRoot(SourceCall& call);
StatusOr<StepPtr> ReadCacheRead(SourceCall& call);
StatusOr<StepPtr> ReadCacheWrite(SourceCall& call);
StatusOr<StepPtr> ReadRfactor(SourceCall& call);
StatusOr<StepPtr> ReadBuffering(SourceCall& call);
StatusOr<StepPtr> ReadLayout(SourceCall& call);
StatusOr<StepPtr> ReadMergeAxes(SourceCall& call);
StatusOr<StepPtr> ReadMoveStage(SourceCall& call);
StatusOr<StepPtr> ReadOnlineSoftmax(SourceCall& call);

}  // namespace kiln::schedule
