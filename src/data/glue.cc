// The GLUE tasks: one or two sentences and a label in the columns of tab-separated lines.
#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/spelling.h"
#include "data/text_inputs.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

struct Task {
    std::string_view name;
    bool header = true;
    int label = 0;  // column; -1 is the last one
    int first = 0, second = -1;
    std::vector<std::string_view> classes;  // words for 0, 1, …; empty: the label is a number
};

const std::vector<Task>& tasks() {
    static const std::vector<Task> kTasks{
        {"mrpc", true, 0, 3, 4, {}},
        {"sst-2", true, 1, 0, -1, {}},
        {"qqp", true, 5, 3, 4, {}},
        {"cola", false, 1, 3, -1, {}},
        {"sts-b", true, -1, 7, 8, {}},
        {"qnli", true, -1, 1, 2, {"entailment", "not_entailment"}},
        {"rte", true, -1, 1, 2, {"entailment", "not_entailment"}},
        {"wnli", true, -1, 1, 2, {}},
        {"mnli", true, -1, 8, 9, {"contradiction", "entailment", "neutral"}},
    };
    return kTasks;
}

const Task& task_named(const Settings& settings) {
    const std::string name = settings.get("task", "mrpc");
    std::vector<std::string_view> names;
    for (const Task& task : tasks()) {
        if (task.name == name) return task;
        names.push_back(task.name);
    }
    settings.get("task").reject(fmt::format("one of {}", fmt::join(names, ", ")));
}

std::vector<std::string_view> columns_of(std::string_view line) {
    std::vector<std::string_view> columns;
    for (size_t tab = 0; tab != std::string_view::npos;) {
        tab = line.find('\t');
        columns.push_back(line.substr(0, tab));
        if (tab != std::string_view::npos) line.remove_prefix(tab + 1);
    }
    return columns;
}

class Glue : public Dataset {
  public:
    Glue(const fs::path& path, const Task& task, WordPiece pieces, TextInputs inputs)
        : where_(path.string()),
          file_(MappedFile::open(path)),
          task_(task),
          pieces_(std::move(pieces)),
          inputs_(std::move(inputs)) {
        std::string_view rest(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size());
        if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
        for (int64_t number = 1; !rest.empty(); ++number) {
            const size_t end = rest.find('\n');
            std::string_view line = rest.substr(0, end);
            rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (!line.empty() && (number > 1 || !task.header)) lines_.push_back({line, number});
        }
        require(!lines_.empty(), "{}: there are no samples", where_);
    }

    int64_t size() const override { return static_cast<int64_t>(lines_.size()); }

    Sample sample(int64_t index) const override {
        const Line& line = lines_.at(static_cast<size_t>(index));
        Sample sample;
        sample.name = fmt::format("{}: line {}", where_, line.number);
        const std::vector<std::string_view> columns = columns_of(line.text);
        const int needed = std::max({task_.label, task_.first, task_.second}) + 1;
        require(static_cast<int>(columns.size()) >= needed, "{}: {} columns, {} needs {}", sample.name,
                columns.size(), task_.name, needed);
        const std::string_view second =
            task_.second < 0 ? std::string_view() : columns[static_cast<size_t>(task_.second)];
        const TextSequence sequence =
            encode(pieces_, columns[static_cast<size_t>(task_.first)], second, inputs_.length());
        sample.inputs = inputs_.inputs(sequence, pieces_.pad(), index);
        sample.label =
            label(task_.label < 0 ? columns.back() : columns[static_cast<size_t>(task_.label)], sample.name);
        return sample;
    }

  private:
    struct Line {
        std::string_view text;
        int64_t number;
    };

    Label label(std::string_view word, const std::string& where) const {
        const auto found = std::ranges::find(task_.classes, word);
        if (found != task_.classes.end()) return class_label(found - task_.classes.begin());
        int64_t whole = 0;
        const char* end = word.data() + word.size();
        const auto as_whole = std::from_chars(word.data(), end, whole);
        const bool scored = task_.name == "sts-b";
        if (!scored && task_.classes.empty() && as_whole.ec == std::errc() && as_whole.ptr == end)
            return class_label(whole);
        float score = 0;
        const auto as_score = std::from_chars(word.data(), end, score);
        if (scored && as_score.ec == std::errc() && as_score.ptr == end)
            return {{"label", Tensor::scalar<float>(score)}};
        throw Error(fmt::format("{}: '{}' is no label of {}", where, word.substr(0, 40), task_.name),
                    task_.classes.empty() ? "expected a number"
                                          : fmt::format("expected {}", fmt::join(task_.classes, ", ")));
    }

    std::string where_;
    std::shared_ptr<const MappedFile> file_;
    std::vector<Line> lines_;
    Task task_;
    WordPiece pieces_;
    TextInputs inputs_;
};

}  // namespace

DatasetPointer make_glue(const Settings& settings, Ports inputs) {
    settings.allow_keys({"data_dir", "task", "vocab_file", "max_seq_length", "do_lower_case", "model_type",
                         "model_name_or_path", "evaluate", "train", "dynamic_length"});
    fs::path path = existing_path(settings, "data_dir");
    const Task& task = task_named(settings);
    const bool train = settings.get("train", !settings.get("evaluate", true));
    std::error_code error;
    if (fs::is_directory(path, error))
        path /= train ? "train.tsv" : task.name == "mnli" ? "dev_matched.tsv" : "dev.tsv";
    require(!settings.get("dynamic_length", false),
            "dynamic_length is not supported: sequences are padded to one length");
    TextInputs text(inputs, settings.get("max_seq_length", 0), 128);
    return std::make_unique<Glue>(path, task, open_vocabulary(settings), std::move(text));
}

}  // namespace kilter
