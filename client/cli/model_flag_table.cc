#include "client/cli/model_flag_table.h"

#include <CLI/CLI.hpp>

namespace kiln::client {

void ModelFlagTable::AddTo(CLI::App& app) {
  CLI::App* model = app.add_subcommand(
      "model", "cost models: trained from records, looked at, tested, asked, and kept");
  model->require_subcommand(1);
  AddTrain(*model);
  AddShow(*model);
  AddTest(*model);
  AddPredict(*model);
  AddList(*model);
  AddGet(*model);
  AddPut(*model);
  AddDelete(*model);
}

void ModelFlagTable::AddModel(CLI::App& command, std::string& model) {
  command
      .add_option("model", model,
                  "a file that kiln model train wrote, or the name of a model that is kept")
      ->required();
}

void ModelFlagTable::AddRecords(CLI::App& command) {
  RecordFilterFlags& filter = records_.filter;
  command.add_option("log", records_.logs,
                     "logs of auto_scheduler [the records of the database or scheduler]");
  command
      .add_option("--bind", records_.bind,
                  "KEY=FILE, or KEY=OPERATOR ARGUMENTS: what a workload key of the logs stands for "
                  "(may be repeated)")
      ->allow_extra_args(false);
  command.add_option("--target", filter.target, "only targets that start so: llvm, cuda");
  AddRecordSelection(command, filter);
  command
      .add_option("--programs", records_.programs,
                  "at most so many, shared out evenly by computation and device: of each the "
                  "fastest and others by chance")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--seed", records_.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  command
      .add_option("-k", records_.k, "how many of the highest scores count: recall and best of them")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  flag_table_.AddPlace(command);
}

void ModelFlagTable::AddTrain(CLI::App& model) {
  CLI::App* train = flag_table_.Add(
      model, "train", "train a model on records, and test it on those that were held out",
      Plain([this] {
        trained_.records = records_;
        return TrainModelCommand(trained_, flag_table_.session());
      }));
  AddRecords(*train);
  train->add_option("-o,--output", trained_.output,
                    "write it to this file, for instance model.kcm");
  train->add_option("--name", trained_.name,
                    "keep it in the database or scheduler under this name");
  train->add_flag("--replace", trained_.replace, "with --name: in place of the one that is there");
  train
      ->add_option("--held-out", trained_.held_out,
                   "the share that it does not learn from and is tested on; 0: none")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  train->add_flag("--by-computation", trained_.by_computation,
                  "hold out whole computations [some records of each]");
  train->add_flag("--without-estimates", trained_.without_estimates,
                  "trees alone [they correct the analytic model]");
  train
      ->add_option("--parameter", trained_.parameters,
                   "of the model: NAME=NUMBER, any number of them (docs/cost-models.md)")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  train
      ->add_option("--if-grown", trained_.if_grown,
                   "only if there are so many more records than when it was trained last: 0.2 is a "
                   "fifth more")
      ->type_name("SHARE")
      ->check(CLI::NonNegativeNumber);
}

void ModelFlagTable::AddShow(CLI::App& model) {
  CLI::App* show = flag_table_.Add(
      model, "show", "what a model was trained on, how well it ranks, and what it looks at",
      Plain([this] { return ShowModelCommand(shown_, flag_table_.session()); }));
  AddModel(*show, shown_.model);
  show->add_option("--columns", shown_.columns,
                   "so many of the columns of features, the most important ones; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  flag_table_.AddPlace(*show);
}

void ModelFlagTable::AddTest(CLI::App& model) {
  CLI::App* test = flag_table_.Add(model, "test", "how well a model ranks records", Plain([this] {
                                     tested_.records = records_;
                                     return TestModelCommand(tested_, flag_table_.session());
                                   }));
  AddModel(*test, tested_.model);
  AddRecords(*test);
}

void ModelFlagTable::AddPredict(CLI::App& model) {
  CLI::App* predict = flag_table_.Add(
      model, "predict", "what a model says of a schedule: its time, and that of each stage",
      Plain([this] { return PredictCommand(predicted_, flag_table_.session()); }));
  AddModel(*predict, predicted_.model);
  SubjectFlags& subject = predicted_.subject;
  predict->add_option("what", subject.what,
                      "a trial (JOB/N), a job, the number of a record, an operator (with --args), "
                      "or a text file; nothing: the best of the newest job");
  predict->add_option("--op", subject.arguments.op, "an operator or text file");
  AddWorkloadArguments(*predict, subject.arguments);
  predict->add_option("--target", subject.target,
                      "of --steps and --schedule what it is for [what the model learned of]; of "
                      "records only targets that start so");
  predict->add_option("--task", subject.task, "only this task of a job");
  CLI::Option* steps = predict->add_option(
      "--steps", predicted_.steps_path, "a file with steps as JSON; none: the unscheduled loops");
  steps->type_name("FILE");
  predict
      ->add_option("--schedule", predicted_.schedule_path,
                   "a schedule as `kiln show --as schedule` prints it; - = stdin")
      ->type_name("FILE")
      ->excludes(steps);
  flag_table_.AddPlace(*predict);
}

void ModelFlagTable::AddList(CLI::App& model) {
  CLI::App* list =
      flag_table_.Add(model, "list", "the models that are kept",
                      Plain([this] { return ListModelsCommand(flag_table_.session()); }));
  flag_table_.AddPlace(*list);
}

void ModelFlagTable::AddGet(CLI::App& model) {
  CLI::App* get = flag_table_.Add(
      model, "get", "write a model that is kept to a file",
      Plain([this] { return GetModelCommand(name_, output_, flag_table_.session()); }));
  get->add_option("name", name_, "its name")->required();
  get->add_option("-o,--output", output_, "the file [NAME.kcm]");
  flag_table_.AddPlace(*get);
}

void ModelFlagTable::AddPut(CLI::App& model) {
  CLI::App* put = flag_table_.Add(
      model, "put", "keep the model of a file in the database or scheduler",
      Plain([this] { return PutModelCommand(path_, name_, replace_, flag_table_.session()); }));
  put->add_option("file", path_, "the file")->required();
  put->add_option("--name", name_, "under this name [that of the file]");
  put->add_flag("--replace", replace_, "in place of the one that is there");
  flag_table_.AddPlace(*put);
}

void ModelFlagTable::AddDelete(CLI::App& model) {
  CLI::App* remove =
      flag_table_.Add(model, "delete", "delete a model that is kept, for good",
                      Plain([this] { return DeleteModelCommand(name_, flag_table_.session()); }));
  remove->add_option("name", name_, "its name")->required();
  flag_table_.AddPlace(*remove);
}

}  // namespace kiln::client
