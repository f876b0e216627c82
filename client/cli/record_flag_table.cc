#include "client/cli/record_flag_table.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "client/view/render.h"

namespace kiln::client {

void RecordFlagTable::AddTo(CLI::App& app) {
  AddBest(app);
  AddShow(app);
  AddExportKernel(app);
  AddTrial(app);
  AddRecords(app);
}

// ---- one record -----------------------------------------------------------------------------

void RecordFlagTable::AddRecord(CLI::App& command) {
  command.add_option("--record", subject_.record, "this record, by its number")
      ->check(CLI::PositiveNumber);
}

void RecordFlagTable::AddBest(CLI::App& app) {
  CLI::App* best = flag_table_.Add(
      app, "best", "the best record of a workload, a job, a kernel or a template of autotvm",
      Plain([this] { return BestCommand(subject_, flag_table_.session()); }));
  AddSubject(*best, flag_table_, subject_);
  AddKernelSpace(*best, subject_);
}

Status RecordFlagTable::RunShow() const {
  if (sketches_) return SketchesCommand(subject_, flag_table_.session());
  return ShowCommand(subject_, {form_, steps_, leave_out_}, flag_table_.session());
}

void RecordFlagTable::AddShow(CLI::App& app) {
  CLI::App* show = flag_table_.Add(app, "show", "a schedule in every form, the best one by default",
                                   Plain([this] { return RunShow(); }));
  AddSubject(*show, flag_table_, subject_);
  AddKernelSpace(*show, subject_);
  show->add_option("--as", form_, "the form")
      ->check(CLI::IsMember(RenderForms()))
      ->capture_default_str();
  AddRecord(*show);
  show->add_option("--steps", steps_,
                   "with --op: a file with steps as JSON; none: the unscheduled loops")
      ->type_name("FILE");
  show->add_option("--leave-out", leave_out_,
                   "a pass of the compiler that does not run, as --as passes names it (may be "
                   "repeated)")
      ->type_name("PASS");
  show->add_flag(
          "--sketches", sketches_,
          "the sketches that a search fills in: loops with blanks, for --target [as for kiln tune]")
      ->excludes("--as")
      ->excludes("--steps");
}

void RecordFlagTable::AddExportKernel(CLI::App& app) {
  CLI::App* export_kernel = flag_table_.Add(
      app, "export-kernel",
      "a cuda record as a file for nvcc: kernels, reference, a main that checks and times",
      Plain([this] { return ExportKernelCommand(subject_, output_, flag_table_.session()); }));
  AddSubject(*export_kernel, flag_table_, subject_);
  AddRecord(*export_kernel);
  export_kernel->add_option("-o,--output", output_, "the file, for instance kernel.cu [stdout]");
}

StatusOr<int> RecordFlagTable::RunTrial() const {
  if (schedule_.empty()) {
    if (subject_.what.empty())
      return InvalidArgument("expected a trial, JOB/N, or a schedule with --schedule FILE");
    KILN_RETURN_IF_ERROR(TrialCommand(subject_.what, keep_, flag_table_.session()));
    return 0;
  }
  InitGrpc();
  v1::TuneOptions options;
  measuring_.Set(/*may_idle=*/false, options);
  return ScheduleTrialCommand({subject_, schedule_, options.measure(), options.build_timeout_ms()},
                              flag_table_.session());
}

void RecordFlagTable::AddTrial(CLI::App& app) {
  CLI::App* trial = flag_table_.Add(app, "trial",
                                    "build and measure one recorded trial again, alone; or a "
                                    "schedule that you wrote, and keep it",
                                    [this] { return RunTrial(); });
  AddSubject(*trial, flag_table_, subject_);
  CLI::Option* schedule =
      trial
          ->add_option("--schedule", schedule_,
                       "a schedule as `kiln show --as schedule` prints it, of the operator, text "
                       "file or record; - = stdin")
          ->type_name("FILE");
  trial->add_option("--keep", keep_, "keep requests and binaries in this folder")
      ->excludes(schedule);
}

// ---- many -----------------------------------------------------------------------------------

void RecordFlagTable::AddRecords(CLI::App& app) {
  CLI::App* records = app.add_subcommand(
      "records", "records of measurements: logs in and out, lists, curves, what stays");
  records->require_subcommand(1);
  AddExport(*records);
  AddImport(*records);
  AddBind(*records);
  AddDistill(*records);
  AddMeasure(*records);
  AddStats(*records);
  AddList(*records);
  AddCurve(*records);
  AddDelete(*records);
  AddPrune(*records);
}

void RecordFlagTable::AddFormat(CLI::App& command, std::string& format) {
  command
      .add_option("--format", format,
                  "auto_scheduler: schedules; autotvm: what was imported from its logs")
      ->check(CLI::IsMember({kScheduleFormat, kAutotvmFormat}))
      ->capture_default_str();
}

void RecordFlagTable::AddExport(CLI::App& records) {
  CLI::App* out =
      flag_table_.Add(records, "export", "print records as lines of a log",
                      Plain([this] { return ExportCommand(exported_, flag_table_.session()); }));
  AddFormat(*out, exported_.format);
  out->add_option("--job", exported_.job, "only of this job");
  out->add_option("--workload", exported_.workload,
                  "only of this workload key, or of autotvm's template of this name");
  out->add_flag("--errors", exported_.errors, "failed trials too");
  out->add_flag("--extended", exported_.extended, "records with steps that TVM does not have, too");
  out->add_flag("--all-keys", exported_.all_keys,
                "a line for each key that versions of TVM have for the computation");
  out->add_option("-o,--output", exported_.output, "write to this file [stdout]");
  flag_table_.AddPlace(*out);
}

void RecordFlagTable::AddImport(CLI::App& records) {
  CLI::App* in =
      flag_table_.Add(records, "import", "add the lines of logs, or all of other databases",
                      Plain([this] { return ImportCommand(imported_, flag_table_.session()); }));
  in->add_option("file", imported_.paths,
                 "logs of auto_scheduler or of autotvm, - = stdin; or databases of Kiln")
      ->required();
  in->add_option("--rejected", imported_.rejected, "write the lines that are refused to this file");
  AddBindings(*in, imported_.bind);
  flag_table_.AddPlace(*in);
}

void RecordFlagTable::AddBindings(CLI::App& command, std::vector<std::string>& bind) {
  command
      .add_option("--bind", bind,
                  "KEY=FILE, or KEY=OPERATOR ARGUMENTS: what a workload key of the log stands for "
                  "where it does not say; kept, as records bind does (may be repeated)")
      ->allow_extra_args(false);
}

void RecordFlagTable::AddBind(CLI::App& records) {
  CLI::App* bind = flag_table_.Add(
      records, "bind", "say which operator or text file a workload key of imported records is of",
      Plain([this] { return BindCommand(bound_, flag_table_.session()); }));
  bind->add_option("key", bound_.key, "the key, for instance '[\"my_matmul\", 127, 96, 80]'")
      ->required();
  bind->add_option("what", bound_.what, "an operator (with --args), or a text file");
  bind->add_option("--op", bound_.arguments.op, "an operator or text file");
  AddWorkloadArguments(*bind, bound_.arguments);
  flag_table_.AddPlace(*bind);
}

void RecordFlagTable::AddDistill(CLI::App& records) {
  CLI::App* distill =
      flag_table_.Add(records, "distill", "the best record of each workload, as a log",
                      Plain([this] { return DistillCommand(distilled_, flag_table_.session()); }));
  distill->add_option(
      "file", distilled_.path,
      "a log, of the format of its first line [the records of the database or scheduler]");
  AddFormat(*distill, distilled_.format);
  distill->add_flag("--extended", distilled_.extended,
                    "records with steps that TVM does not have, too");
  distill->add_option("-o,--output", distilled_.output, "write to this file [stdout]");
  flag_table_.AddPlace(*distill);
}

// Measures with the timings that the user asked for, and no more.
StatusOr<int> RecordFlagTable::RunMeasure() const {
  InitGrpc();
  v1::TuneOptions options;
  measuring_.Set(/*may_idle=*/false, options);
  MeasureLogFlags measured = measured_;
  measured.filter = filter_;
  measured.measure = options.measure();
  measured.build_timeout_ms = options.build_timeout_ms();
  return MeasureLogCommand(measured, flag_table_.session());
}

void RecordFlagTable::AddMeasure(CLI::App& records) {
  CLI::App* measure =
      flag_table_.Add(records, "measure",
                      "build, check and time the records of a log, or the best ones of the "
                      "database, on this machine again",
                      [this] { return RunMeasure(); });
  measure->add_option("file", measured_.path,
                      "the log [the best records of --op, --workload or --job]");
  measure->add_option("--target", measured_.target,
                      "llvm or cuda: the device [as the first record]");
  AddSelection(*measure);
  AddBindings(*measure, measured_.bind);
  measuring_.AddTo(*measure);
  flag_table_.AddPlace(*measure);
}

void RecordFlagTable::AddStats(CLI::App& records) {
  CLI::App* stats = flag_table_.Add(records, "stats", "how many records there are of what",
                                    Plain([this] { return StatsCommand(flag_table_.session()); }));
  flag_table_.AddPlace(*stats);
}

void RecordFlagTable::AddSelection(CLI::App& command) {
  AddRecordSelection(command, filter_);
  command.add_option("--top", filter_.top, "only so many, the best ones, best first");
}

void RecordFlagTable::AddFilter(CLI::App& command) {
  AddSelection(command);
  command.add_option("--target", filter_.target, "only targets that start so");
  command.add_flag("--errors", filter_.errors, "failed trials too");
  flag_table_.AddPlace(command);
}

void RecordFlagTable::AddList(CLI::App& records) {
  CLI::App* list =
      flag_table_.Add(records, "list", "records, one a line",
                      Plain([this] { return ListRecordsCommand(filter_, flag_table_.session()); }));
  AddFilter(*list);
  list->add_option("--distance", filter_.distance,
                   "also of workloads with other extents that are at most so far away, as TVM's "
                   "auto_scheduler has it (1: none); with --top ranked by cost x distance")
      ->check(CLI::Range(1.0, 1e18));
}

void RecordFlagTable::AddCurve(CLI::App& records) {
  CLI::App* curve =
      flag_table_.Add(records, "curve", "how fast jobs found their best programs",
                      Plain([this] { return CurveCommand(curve_, flag_table_.session()); }));
  curve->add_option("job", curve_.jobs, "jobs; one line for each")->required();
  curve->add_option("--task", curve_.task, "only this task of each [the total latency]")
      ->check(CLI::NonNegativeNumber);
  curve->add_flag("--seconds", curve_.seconds, "against the time instead of the trials");
  curve->add_option("-o,--output", curve_.output,
                    "a picture instead of text, for instance curve.svg");
  flag_table_.AddPlace(*curve);
}

void RecordFlagTable::AddDelete(CLI::App& records) {
  CLI::App* remove =
      flag_table_.Add(records, "delete",
                      "delete records for good: by number, of a job, or by a filter", Plain([this] {
                        deleted_.filter = filter_;
                        return DeleteRecordsCommand(deleted_, flag_table_.session());
                      }));
  remove->add_option("what", deleted_.what, "numbers of records, or jobs");
  remove->add_flag("--yes", deleted_.yes, "do not ask");
  AddFilter(*remove);
}

void RecordFlagTable::AddPrune(CLI::App& records) {
  CLI::App* prune = flag_table_.Add(
      records, "prune", "delete all records but the best ones of each computation and target",
      Plain([this] {
        pruned_.filter = filter_;
        return PruneRecordsCommand(pruned_, flag_table_.session());
      }));
  prune->add_option("--keep", pruned_.keep,
                    "so many stay of each computation and target, the best ones [1]");
  prune->add_option("--older-than", pruned_.older_than,
                    "only records from before this time go: 90d ago, or 2026-11-21");
  prune->add_flag("--yes", pruned_.yes, "do not ask");
  AddFilter(*prune);
}

}  // namespace kiln::client
