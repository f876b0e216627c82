#include "client/cli/choice_flag_table.h"

#include <CLI/CLI.hpp>

#include "client/view/render.h"

namespace kiln::client {

void ChoiceFlagTable::AddTo(CLI::App& app) {
  CLI::App* choice = app.add_subcommand(
      "choice", "which schedule a computation gets where nothing is searched; setting one");
  choice->require_subcommand(1);
  AddQuery(*choice);
  AddPin(*choice);
  AddUnpin(*choice);
  AddList(*choice);
}

void ChoiceFlagTable::AddQuery(CLI::App& choice) {
  CLI::App* query = flag_table_.Add(
      choice, "query", "the schedule that kiln compile would take, and why that one",
      Plain([this] { return QueryChoiceCommand(queried_, flag_table_.session()); }));
  AddSubject(*query, flag_table_, queried_.subject, "what it is for [llvm; of a record its own]");
  query->add_option("--as", queried_.form, "print the schedule as well, in a form of kiln show")
      ->check(CLI::IsMember(RenderForms()));
  query->add_flag("--without-compatible", queried_.without_compatible,
                  "no record of another computation or another target");
  query->add_flag("--without-sample", queried_.without_sample,
                  "none that is chosen without measuring");
  query->add_option("--seed", queried_.seed, "of a schedule that is chosen without measuring")
      ->check(NotNegative())
      ->capture_default_str();
  CLI::Option* template_args =
      query
          ->add_option("--template-args", queried_.template_args,
                       "instead the configuration of a template of autotvm: of the one named, "
                       "with these arguments as a line of its logs has them")
          ->type_name("JSON");
  query
      ->add_option("--template-kwargs", queried_.template_kwargs,
                   "with --template-args: its keyword arguments")
      ->type_name("JSON")
      ->needs(template_args)
      ->capture_default_str();
}

void ChoiceFlagTable::AddPin(CLI::App& choice) {
  CLI::App* pin = flag_table_.Add(
      choice, "pin",
      "set a schedule for a computation and target: it goes before all records, for all who use "
      "the database or scheduler",
      Plain([this] { return PinCommand(subject_, schedule_, flag_table_.session()); }));
  AddSubject(*pin, flag_table_, subject_,
             "with --schedule: what it is for [llvm; of a record its own]; else only targets that "
             "start so");
  pin->add_option("--schedule", schedule_,
                  "this schedule, as `kiln show --as schedule` prints it; - = stdin [the best "
                  "record]")
      ->type_name("FILE");
}

void ChoiceFlagTable::AddUnpin(CLI::App& choice) {
  CLI::App* unpin =
      flag_table_.Add(choice, "unpin", "records count again for the computation",
                      Plain([this] { return UnpinCommand(subject_, flag_table_.session()); }));
  AddSubject(*unpin, flag_table_, subject_);
}

void ChoiceFlagTable::AddList(CLI::App& choice) {
  CLI::App* list =
      flag_table_.Add(choice, "list", "the schedules that are set",
                      Plain([this] { return ListPinnedCommand(flag_table_.session()); }));
  flag_table_.AddPlace(*list);
}

}  // namespace kiln::client
