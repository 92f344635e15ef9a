// The command `kilter`: reads the command line, runs one sub-command, and turns errors into messages and exit codes.
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "kilter/base/error.h"
#include "kilter/version.h"

namespace {

constexpr int kBadInput = 1;
constexpr int kWrongUsage = 2;
constexpr int kInterrupted = 130;  // what shells report for Ctrl-C

// Message and hint, both indented to stand below each other.
void complain(const std::string& message, const std::string& hint = {}) {
    fmt::print(stderr, "kilter: {}\n", message);
    if (!hint.empty()) fmt::print(stderr, "        {}\n", hint);
}

std::string chosen(const CLI::App& app) {
    const auto commands = app.get_subcommands();
    return commands.empty() ? "kilter" : "kilter " + commands.front()->get_name();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Makes neural networks fast on CPUs: ONNX in, INT8 out, and an engine that runs both.",
                 "kilter");
    app.set_version_flag("--version", "kilter " KILTER_VERSION, "Print the version and exit");
    app.require_subcommand(1);
    app.get_formatter()->column_width(32);
    app.footer(
        "Example:\n  kilter quantize model.onnx --data samples.npy -o int8.onnx\n  kilter bench model.onnx int8.onnx\n\n"
        "'kilter COMMAND --help' explains a command. Exit status: 0 done, 1 bad input, 2 wrong usage.");
    kilter::cli::add_inspect(app);
    kilter::cli::add_run(app);
    kilter::cli::add_bench(app);
    kilter::cli::add_quantize(app);
    kilter::cli::add_diff(app);
    kilter::cli::add_tune(app);
    kilter::cli::add_eval(app);
    kilter::cli::add_recover(app);
    kilter::cli::add_sensitivity(app);
    kilter::cli::add_config(app);
    kilter::cli::add_tf(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {  // --help and --version
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        complain(error.what(), fmt::format("'{} --help' shows how to use it", chosen(app)));
        return kWrongUsage;
    } catch (const kilter::Error& error) {
        complain(error.what(), error.hint());
        return kBadInput;
    } catch (const kilter::cli::Interrupted&) {
        return kInterrupted;
    } catch (const std::bad_alloc&) {
        complain("out of memory");
        return kBadInput;
    } catch (const std::exception& error) {
        complain(fmt::format("internal error: {}", error.what()));
        return kBadInput;
    }
    return std::fflush(stdout) == 0 ? 0 : kBadInput;
}
