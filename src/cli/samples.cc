#include "cli/samples.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"

namespace kilter::cli {
namespace {

// A number or a fraction such as 1/255.
float fraction(const std::string& text) {
    const auto number = [&](std::string_view part) {
        float value = 0;
        const char* last = part.data() + part.size();
        const auto [end, error] = std::from_chars(part.data(), last, value);
        if (error != std::errc() || end != last || !std::isfinite(value))
            throw CLI::ValidationError("--scale",
                                       fmt::format("expected a number or 1/255, found '{}'", text));
        return value;
    };
    const size_t slash = text.find('/');
    if (slash == std::string::npos) return number(text);
    return number(std::string_view(text).substr(0, slash)) / number(std::string_view(text).substr(slash + 1));
}

}  // namespace

Loader SampleArguments::open(const std::vector<Port>& inputs) const {
    return open(sources, inputs, {.batch_size = batch, .limit = samples});
}

Loader SampleArguments::open(const std::vector<std::string>& files, const std::vector<Port>& inputs,
                             LoaderOptions how) const {
    DataOptions options{.mean = mean, .std = std, .size = size, .short_side = resize};
    if (!scale.empty()) options.scale = fraction(scale);
    if (!layout.empty()) options.layout = layout == "nhwc" ? Layout::nhwc : Layout::nchw;
    for (const float value : std)
        if (value == 0) throw CLI::ValidationError("--std", "a deviation must not be 0");
    options.labels = labels;
    DataSource source = open_data(files, inputs, options);
    require(source.dataset->size() > 0, "{}: there are no samples", files.front());
    return {source.dataset, std::move(source.transforms), how};
}

void add_labels_option(CLI::App& command, SampleArguments& arguments) {
    command
        .add_option("--labels", arguments.labels,
                    "Lines \"file class\", or .npy (default: class folders, or what the files hold)")
        ->type_name("FILE");
}

void add_sample_options(CLI::App& command, SampleArguments& arguments, const std::string& samples_help) {
    const auto numbers = [&](const char* option, std::vector<float>& values, const char* help) {
        command.add_option(option, values, help)
            ->type_name("X,X")
            ->delimiter(',')
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 31).description("");
    command
        .add_option("--data", arguments.sources,
                    "Samples: .npy, .npz, TFRecord, .rec, idx, folder; NAME=FILE.npy per input")
        ->type_name("PATH")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_option("--samples", arguments.samples, samples_help)->type_name("N")->check(positive);
    command.add_option("--batch", arguments.batch, "Samples of one run (default 1)")
        ->type_name("N")
        ->check(positive);
    command.add_option("--scale", arguments.scale, "Multiply pixels or array elements, e.g. by 1/255")
        ->type_name("X");
    numbers("--mean", arguments.mean, "Then subtract, one number or one per channel");
    numbers("--std", arguments.std, "Then divide, one number or one per channel");
    command
        .add_option("--layout", arguments.layout,
                    "nchw or nhwc: layout of images (default: told from the input)")
        ->type_name("L")
        ->check(CLI::IsMember({"nchw", "nhwc"}).description(""));
    command.add_option("--size", arguments.size, "Side of the centre crop of images (default: the input's)")
        ->type_name("N")
        ->check(positive);
    command
        .add_option("--resize", arguments.resize,
                    "Short side images are scaled to before (default: 256/224 of it)")
        ->type_name("N")
        ->check(positive);
}

}  // namespace kilter::cli
