#include "client/record_syntax.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "client/render.h"

namespace kiln::client {

void RecordSyntax::AddTo(CLI::App& app) {
  AddBest(app);
  AddShow(app);
  AddExportKernel(app);
  AddTrial(app);
  AddRecords(app);
}

// ---- one record -----------------------------------------------------------------------------

void RecordSyntax::AddSubject(CLI::App& command) {
  command.add_option("what", subject_.what,
                     "a job, a trial (JOB/N), a workload key, the number of a record, an operator "
                     "(with --args), or a text file; nothing: the newest job");
  command.add_option("--op", subject_.words.op, "an operator or text file");
  AddWords(command, subject_.words);
  command.add_option("--target", subject_.target, "only targets that start so");
  command.add_option("--task", subject_.task, "only this task of a job");
  syntax_.AddPlace(command);
}

void RecordSyntax::AddRecord(CLI::App& command) {
  command.add_option("--record", subject_.record, "this record, by its number")
      ->check(CLI::PositiveNumber);
}

void RecordSyntax::AddBest(CLI::App& app) {
  CLI::App* best = syntax_.Add(app, "best", "the best record of a workload or of a job",
                               Plain([this] { return BestCommand(subject_, syntax_.session()); }));
  AddSubject(*best);
}

Status RecordSyntax::RunShow() const {
  if (sketches_) return SketchesCommand(subject_, syntax_.session());
  return ShowCommand(subject_, {form_, steps_, leave_out_}, syntax_.session());
}

void RecordSyntax::AddShow(CLI::App& app) {
  CLI::App* show = syntax_.Add(app, "show", "a schedule in every form, the best one by default",
                               Plain([this] { return RunShow(); }));
  AddSubject(*show);
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
  show->add_flag("--sketches", sketches_,
                 "the sketches that a search fills in: loops with blanks, for --target (llvm)")
      ->excludes("--as")
      ->excludes("--steps");
}

void RecordSyntax::AddExportKernel(CLI::App& app) {
  CLI::App* export_kernel = syntax_.Add(
      app, "export-kernel",
      "a cuda record as a file for nvcc: kernels, reference, a main that checks and times",
      Plain([this] { return ExportKernelCommand(subject_, output_, syntax_.session()); }));
  AddSubject(*export_kernel);
  AddRecord(*export_kernel);
  export_kernel->add_option("-o,--output", output_, "the file, for instance kernel.cu [stdout]");
}

void RecordSyntax::AddTrial(CLI::App& app) {
  CLI::App* trial =
      syntax_.Add(app, "trial", "build and measure one recorded trial again, alone",
                  Plain([this] { return TrialCommand(trial_, keep_, syntax_.session()); }));
  trial->add_option("trial", trial_, "JOB/N, N from 0")->required();
  trial->add_option("--keep", keep_, "keep requests and binaries in this folder");
  syntax_.AddPlace(*trial);
}

// ---- many -----------------------------------------------------------------------------------

void RecordSyntax::AddRecords(CLI::App& app) {
  CLI::App* records = app.add_subcommand("records", "records in and out as measure logs");
  records->require_subcommand(1);
  AddExport(*records);
  AddImport(*records);
  AddBind(*records);
  AddDistill(*records);
  AddMeasure(*records);
  AddStats(*records);
  AddList(*records);
  AddDelete(*records);
}

void RecordSyntax::AddExport(CLI::App& records) {
  CLI::App* out =
      syntax_.Add(records, "export", "print records as lines of a measure log",
                  Plain([this] { return ExportCommand(exported_, syntax_.session()); }));
  out->add_option("--job", exported_.job, "only of this job");
  out->add_option("--workload", exported_.workload, "only of this workload key");
  out->add_flag("--errors", exported_.errors, "failed trials too");
  out->add_flag("--extended", exported_.extended, "records with steps that TVM does not have, too");
  out->add_flag("--all-keys", exported_.all_keys,
                "a line for each key that versions of TVM have for the computation");
  out->add_option("-o,--output", exported_.output, "write to this file [stdout]");
  syntax_.AddPlace(*out);
}

void RecordSyntax::AddImport(CLI::App& records) {
  CLI::App* in = syntax_.Add(records, "import", "add the lines of a measure log",
                             Plain([this] { return ImportCommand(imported_, syntax_.session()); }));
  in->add_option("file", imported_.path, "the log; - = stdin")->required();
  in->add_option("--rejected", imported_.rejected, "write the lines that are refused to this file");
  AddBindings(*in, imported_.bind);
  syntax_.AddPlace(*in);
}

void RecordSyntax::AddBindings(CLI::App& command, std::vector<std::string>& bind) {
  command
      .add_option("--bind", bind,
                  "KEY=FILE, or KEY=OPERATOR ARGUMENTS: what a workload key of the log stands for "
                  "where it does not say; kept, as records bind does (may be repeated)")
      ->allow_extra_args(false);
}

void RecordSyntax::AddBind(CLI::App& records) {
  CLI::App* bind = syntax_.Add(
      records, "bind", "say which operator or text file a workload key of imported records is of",
      Plain([this] { return BindCommand(bound_, syntax_.session()); }));
  bind->add_option("key", bound_.key, "the key, for instance '[\"my_matmul\", 127, 96, 80]'")
      ->required();
  bind->add_option("what", bound_.what, "an operator (with --args), or a text file");
  bind->add_option("--op", bound_.words.op, "an operator or text file");
  AddWords(*bind, bound_.words);
  syntax_.AddPlace(*bind);
}

void RecordSyntax::AddDistill(CLI::App& records) {
  CLI::App* distill =
      syntax_.Add(records, "distill", "the best record of each workload, as a measure log",
                  Plain([this] { return DistillCommand(distilled_, syntax_.session()); }));
  distill->add_option("file", distilled_.path, "a log [the records of the database or scheduler]");
  distill->add_flag("--extended", distilled_.extended,
                    "records with steps that TVM does not have, too");
  distill->add_option("-o,--output", distilled_.output, "write to this file [stdout]");
  syntax_.AddPlace(*distill);
}

// The timings that are asked for, no more.
StatusOr<int> RecordSyntax::RunMeasure() const {
  InitGrpc();
  v1::TuneOptions options;
  measuring_.Set(/*may_idle=*/false, options);
  MeasureLogFlags measured = measured_;
  measured.measure = options.measure();
  measured.build_timeout_ms = options.build_timeout_ms();
  return MeasureLogCommand(measured, syntax_.session());
}

void RecordSyntax::AddMeasure(CLI::App& records) {
  CLI::App* measure =
      syntax_.Add(records, "measure",
                  "build, check and time the records of a log on this machine, against the log",
                  [this] { return RunMeasure(); });
  measure->add_option("file", measured_.path, "the log")->required();
  measure->add_option("--target", measured_.target,
                      "llvm or cuda: the device [as the log's first line]");
  AddBindings(*measure, measured_.bind);
  measuring_.AddTo(*measure);
  syntax_.AddPlace(*measure);
}

void RecordSyntax::AddStats(CLI::App& records) {
  CLI::App* stats = syntax_.Add(records, "stats", "how many records there are of what",
                                Plain([this] { return StatsCommand(syntax_.session()); }));
  syntax_.AddPlace(*stats);
}

void RecordSyntax::AddFilter(CLI::App& command) {
  command.add_option("--job", filter_.job, "only of this job");
  command.add_option("--workload", filter_.workload,
                     "only of this workload key, or of this computation by its identity");
  command.add_option("--op", filter_.words.op, "only of this operator or text file, with --args");
  AddWords(command, filter_.words);
  command.add_option("--target", filter_.target, "only targets that start so");
  command.add_option("--device", filter_.device, "only of this device, by its name");
  command.add_option("--since", filter_.since,
                     "only from this time on: 30m, 12h, 7d ago, or 2026-11-21");
  command.add_flag("--errors", filter_.errors, "failed trials too");
  command.add_option("--top", filter_.top, "only so many, the best ones, best first");
  syntax_.AddPlace(command);
}

void RecordSyntax::AddList(CLI::App& records) {
  CLI::App* list =
      syntax_.Add(records, "list", "records, one a line",
                  Plain([this] { return ListRecordsCommand(filter_, syntax_.session()); }));
  AddFilter(*list);
}

void RecordSyntax::AddDelete(CLI::App& records) {
  CLI::App* remove =
      syntax_.Add(records, "delete", "delete records for good: by number, of a job, or by a filter",
                  Plain([this] {
                    deleted_.filter = filter_;
                    return DeleteRecordsCommand(deleted_, syntax_.session());
                  }));
  remove->add_option("what", deleted_.what, "numbers of records, or jobs");
  remove->add_flag("--yes", deleted_.yes, "do not ask");
  AddFilter(*remove);
}

}  // namespace kiln::client
