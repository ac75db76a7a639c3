#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>

#include "cli/bench_sync.h"
#include "cli/bench_verbs.h"
#include "cli/cuda_machine.h"
#include "cli/doctor.h"
#include "cli/model_verbs.h"
#include "cli/moe_verbs.h"
#include "cli/output_form.h"
#include "cli/verb_host.h"
#include "cli/version.h"

namespace tileweave::cli {
namespace {

constexpr const char* kCommand = "tileweave";

constexpr const char* kExamples = R"(
Examples:
  tileweave generate --model DIR --chat --prompt "Why is the sky blue?"
  tileweave chat --model DIR             a conversation
  tileweave info --model org/name        what a model is, before it is loaded
  tileweave doctor                       what this machine can do
  tileweave doctor --device cuda --json  the GPU alone, for a program
  tileweave bench sync                   what a hop costs on the GPU, for every kind of edge
  tileweave bench sync --device cpu --quick

Exit status: 0, 1 when a verb failed, 2 for arguments that make no sense, 130 after Ctrl-C.)";

constexpr const char* kDoctorHelp = R"(
With a GPU, doctor measures whether the launch order is kept and stores that finding for this GPU
and driver in launch_order.json: in the folder given by --cache, else in $XDG_CACHE_HOME/tileweave,
else in ~/.cache/tileweave. That it cannot be stored is a warning. What `tileweave tune` measured lies
in the same folder; doctor says how many entries there are.

Examples:
  tileweave doctor
  tileweave doctor --device cpu --json
  tileweave doctor --device cuda --cache /var/cache/tileweave)";

constexpr const char* kBenchHelp = R"(
Examples:
  tileweave bench sync
  tileweave bench sync --device cpu --quick)";

constexpr const char* kBenchSyncHelp = R"(
A hop is one dependent kernel of a chain; all arms run the same chain, in turn. On --device cpu the
numbers are those of the emulated device's scheduler and say nothing about a GPU.

Examples:
  tileweave bench sync
  tileweave bench sync --repeat 100 --json > hops.json
  tileweave bench sync --device cpu --quick)";

/// Error messages of the parser and of the system may have several lines.
std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// "tileweave bench sync" for the innermost verb that was parsed.
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

class CommandLine : public VerbHost {
 public:
  CommandLine(std::ostream& out, std::ostream& err) : out_(out), err_(err) {
    app_.footer(kExamples);
    app_.set_help_flag("-h,--help", "Print this help");
    app_.set_version_flag("--version", [] {
      return fmt::format("{} {} (devices: cpu{})", kCommand, kVersion,
                         cuda_build() == CudaBuild::kWith ? ", cuda" : "");
    });
    add_doctor();
    add_bench();
    add_model_verbs(*this);
    add_bench_verbs(*this);
    add_moe_verbs(*this);
  }

  int run(const std::vector<std::string>& arguments) {
    try {
      parse(arguments);
      const int status = verbs_.at(innermost())();
      flush_output(out_);
      return status;
    } catch (const CLI::CallForHelp&) {
      return print(app_.help());
    } catch (const CLI::CallForVersion& version) {
      return print(std::string(version.what()) + "\n");
    } catch (const UsageError& error) {
      err_ << fmt::format("{}: {}; see {} --help\n", error.verb(), one_line(error.what()),
                          error.verb());
      // The parser may have given up before it came to --json.
      const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
      if (json) out_ << to_text({{"error", one_line(error.what())}}) << std::flush;
      return kUsageError;
    } catch (const std::bad_alloc&) {
      return fail("out of memory");
    } catch (const std::exception& error) {
      return fail(one_line(error.what()));
    }
  }

 private:
  void add_doctor() {
    CLI::App* verb = app_.add_subcommand("doctor", "Checks what this machine can do for plans");
    verb->footer(kDoctorHelp);
    verb->add_option("--device", doctor_.device, "cpu or cuda; both unless given")
        ->check(CLI::IsMember({"cpu", "cuda"}));
    verb->add_option("--cache", doctor_.cache_folder,
                     "Folder for the finding about launch order, and what was tuned")
        ->type_name("FOLDER")
        ->check(not_empty());
    add_json(verb);
    prepare(verb, [this] {
      doctor_.form = form_;
      doctor(doctor_, out_, err_);
      return kSuccess;
    });
  }

  void add_bench() {
    CLI::App* bench = app_.add_subcommand("bench", "Measures this machine");
    bench->footer(kBenchHelp);
    prepare(bench, [] { return kSuccess; });  // parse() has asked for one of its verbs
    CLI::App* sync = bench->add_subcommand("sync", "Measures a hop for every kind of edge");
    sync->footer(kBenchSyncHelp);
    sync->add_option("--device", bench_sync_.device, "cpu (emulated) or cuda")
        ->check(CLI::IsMember({"cpu", "cuda"}))
        ->capture_default_str();
    CLI::Option* repeat =
        sync->add_option("--repeat", bench_sync_.repeat, "Measurements of every arm")
            ->check(CLI::Range(1, kMostRepeats))
            ->type_name("N")
            ->capture_default_str();
    const std::string quick_help =
        fmt::format("A chain of {} kernels, {} measurements unless --repeat is given", kQuickHops,
                    kQuickRepeats);
    CLI::Option* quick = sync->add_flag("--quick", quick_help);
    add_json(sync);
    prepare(sync, [this, repeat, quick] {
      if (quick->count() != 0) bench_sync_.hops = kQuickHops;
      if (quick->count() != 0 && repeat->count() == 0) bench_sync_.repeat = kQuickRepeats;
      bench_sync_.form = form_;
      bench_sync(bench_sync_, out_);
      return kSuccess;
    });
  }

  static CLI::Validator not_empty() {
    return CLI::Validator(
        [](std::string& text) { return text.empty() ? std::string("is empty") : std::string(); },
        "");
  }

  CLI::App& app() override { return app_; }
  OutputForm form() const override { return form_; }
  std::ostream& out() override { return out_; }
  std::ostream& err() override { return err_; }

  void add_json(CLI::App* verb) override {
    verb->add_flag_callback(
        "--json", [this] { form_ = OutputForm::kJson; },
        "One JSON object on standard output, everything else on standard error");
  }

  /// What is left over of the arguments is named by parse(), in our words.
  void prepare(CLI::App* verb, std::function<int()> run) override {
    verb->set_help_flag("-h,--help", "Print this help");
    verb->allow_extras();
    verb->require_subcommand(0, 1);
    verbs_[verb] = std::move(run);
  }

  const CLI::App* innermost() const {
    const CLI::App* at = &app_;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
    return at;
  }

  void parse(const std::vector<std::string>& arguments) {
    app_.allow_extras();
    app_.require_subcommand(0, 1);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      throw;
    } catch (const CLI::CallForVersion&) {
      throw;
    } catch (const CLI::ParseError& error) {
      throw UsageError(error.what(), full_name(*innermost()));
    }
    const CLI::App* verb = innermost();
    const std::vector<std::string> left = app_.remaining(/*recurse=*/true);
    const bool takes_verb = !verb->get_subcommands({}).empty();
    if (!left.empty()) {
      const bool is_option = left.front().starts_with("-");
      throw UsageError(fmt::format("unknown {} `{}`",
                                   is_option    ? "option"
                                   : takes_verb ? "verb"
                                                : "argument",
                                   left.front()),
                       full_name(*verb));
    }
    if (takes_verb) {
      throw UsageError(fmt::format("a verb is missing: {}", verbs_of(*verb)), full_name(*verb));
    }
  }

  /// "a", "a or b", "a, b or c".
  static std::string verbs_of(const CLI::App& app) {
    const std::vector<const CLI::App*> verbs = app.get_subcommands({});
    std::string names;
    for (std::size_t i = 0; i < verbs.size(); ++i) {
      names += (i == 0 ? "" : i + 1 == verbs.size() ? " or " : ", ") + verbs[i]->get_name();
    }
    return names;
  }

  int print(const std::string& text) {
    out_ << text;
    return out_.flush() ? kSuccess : fail("standard output cannot be written");
  }

  int fail(const std::string& sentence) {
    err_ << fmt::format("{}: {}\n", full_name(*innermost()), sentence);
    if (form_ == OutputForm::kJson) out_ << to_text({{"error", sentence}}) << std::flush;
    return kFailure;
  }

  std::ostream& out_;
  std::ostream& err_;
  CLI::App app_{"Runs language models through separately launched kernels that overlap on tiles.",
                kCommand};
  OutputForm form_ = OutputForm::kTable;
  DoctorOptions doctor_;
  BenchSyncOptions bench_sync_;
  std::map<const CLI::App*, std::function<int()>> verbs_;
};

}  // namespace

int run_command(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  return CommandLine(out, err).run(arguments);
}

}  // namespace tileweave::cli
