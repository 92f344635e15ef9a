#include "config/yaml.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/fail.h"
#include "base/mapped_file.h"

namespace kilter {
namespace {

// No configuration comes near these; an alias that repeats an alias that repeats an alias does.
constexpr size_t kMostBytes = 4 << 20;
constexpr size_t kMostValues = 100'000;
constexpr size_t kDeepest = 64;

constexpr std::string_view kStandardTag = "tag:yaml.org,2002:";

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
}

// Whole numbers as YAML 1.1 writes them: decimal without leading zeros, 0x…, 0b…, '_' between digits.
std::optional<int64_t> parse_integer(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0b")) {
        base = text[1] == 'x' ? 16 : 2;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text.starts_with('0')) {
        return std::nullopt;
    }
    if (text.empty() || text.front() == '_' || text.front() == '-') return std::nullopt;
    std::string digits(text);
    std::erase(digits, '_');
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return negative ? -value : value;
}

std::optional<double> parse_real(std::string_view text) {
    std::string_view digits = text;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (is_one_of(digits, {".inf", ".Inf", ".INF"})) return negative ? -kInfinity : kInfinity;
    if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
    if (digits.empty() || !(digits[0] == '.' || (digits[0] >= '0' && digits[0] <= '9'))) return std::nullopt;
    if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return negative ? -value : value;
}

Settings plain_scalar(const std::string& text) {
    if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return {};
    if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
    if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
    if (const auto whole = parse_integer(text)) return *whole;
    if (const auto real = parse_real(text)) return *real;
    return text;
}

// Puts the document together from the events of the parser.
class Builder final : public YAML::EventHandler {
  public:
    explicit Builder(std::string file) : file_(std::move(file)) {}

    Settings take() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (seen_) throw error(mark, "a second document begins, expected one");
        seen_ = true;
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { value(mark, anchor, {}); }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) throw error(mark, "an alias stands inside of what it repeats");
        count(mark, found->second.size);
        if (frames_.size() + found->second.depth > kDeepest) throw too_deep(mark);
        note_size(found->second.size, found->second.depth);
        place(mark, Settings(found->second.value));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        if (expects_key()) {
            if (anchor != 0) throw error(mark, "a key cannot be an anchor");
            begin_entry(mark, text);
            return;
        }
        value(mark, anchor, scalar(mark, tag, text));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        check_tag(mark, tag, {"seq", "python/tuple", "python/list"});
        open(mark, anchor, Settings(Settings::List{}));
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        check_tag(mark, tag, {"map", "omap", "python/dict"});
        open(mark, anchor, Settings(Settings::Map{}));
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

  private:
    // A list or a map that is being filled.
    struct Frame {
        YAML::Mark mark;
        YAML::anchor_t anchor = 0;
        std::string path;
        bool is_map = false;
        Settings::List list;
        Settings::Map map;
        std::vector<std::pair<YAML::Mark, Settings>> merged;  // what << brought
        std::optional<std::string> key;                       // waits for its value
        YAML::Mark key_mark;
        size_t size = 1;   // values inside, itself too
        size_t depth = 1;  // of the deepest value inside
    };
    struct Anchor {
        Settings value;
        size_t size = 1;
        size_t depth = 0;
    };

    Error error(const YAML::Mark& mark, std::string_view what) const {
        const std::string path = frames_.empty() ? "" : current_path();
        return Error(
            fmt::format("{}:{}: {}{}{}", file_, mark.line + 1, path, path.empty() ? "" : ": ", what));
    }
    Error too_deep(const YAML::Mark& mark) const {
        return error(mark, fmt::format("more than {} lists and maps inside each other", kDeepest));
    }

    std::string current_path() const {
        const Frame& frame = frames_.back();
        if (!frame.is_map) return fmt::format("{}[{}]", frame.path, frame.list.size());
        if (!frame.key) return frame.path;
        return frame.path.empty() ? *frame.key : frame.path + "." + *frame.key;
    }

    bool expects_key() const { return !frames_.empty() && frames_.back().is_map && !frames_.back().key; }

    void begin_entry(const YAML::Mark& mark, const std::string& key) {
        Frame& frame = frames_.back();
        constexpr size_t kLongestKey = 1000;
        if (key.size() > kLongestKey) throw error(mark, "a key is longer than 1000 bytes");
        if (!keys_.insert({frames_.size(), key}).second && key != "<<")
            throw Error(fmt::format("{}:{}: {}{}{}: this key was given before", file_, mark.line + 1,
                                    frame.path, frame.path.empty() ? "" : ".", key),
                        "a key may stand once in a map; remove one of the two");
        frame.key = key;
        frame.key_mark = mark;
        count(mark, 1);
    }

    void count(const YAML::Mark& mark, size_t values) {
        values_ += values;
        if (values_ > kMostValues)
            throw error(mark,
                        fmt::format("more than {} values, aliases counted as what they repeat", kMostValues));
    }

    void note_size(size_t size, size_t depth) {
        if (frames_.empty()) return;
        frames_.back().size += size;
        frames_.back().depth = std::max(frames_.back().depth, depth + 1);
    }

    Settings scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) const {
        if (tag == "!") return text;  // quoted
        if (tag.empty() || tag == "?") return plain_scalar(text);
        check_tag(mark, tag,
                  {"str", "int", "float", "bool", "null", "python/str", "python/unicode", "python/int",
                   "python/float", "python/bool", "python/none"});
        return tag.ends_with("str") || tag.ends_with("unicode") ? Settings(text) : plain_scalar(text);
    }

    void check_tag(const YAML::Mark& mark, std::string_view tag,
                   std::initializer_list<std::string_view> known) const {
        if (tag.empty() || tag == "?" || tag == "!") return;
        if (tag.starts_with(kStandardTag) && is_one_of(tag.substr(kStandardTag.size()), known)) return;
        throw error(mark, fmt::format("the tag '{}' has no meaning here", tag.substr(0, 80)));
    }

    void value(const YAML::Mark& mark, YAML::anchor_t anchor, Settings value) {
        if (expects_key()) throw error(mark, "a key must be text");
        count(mark, 1);
        note_size(1, 0);
        value.at(where(mark));
        if (anchor != 0) anchors_[anchor] = {value, 1, 0};
        place(mark, std::move(value));
    }

    // Values of a map stand where their key does, for that is what readers look for.
    std::string where(const YAML::Mark& mark) const {
        const bool keyed = !frames_.empty() && frames_.back().is_map && frames_.back().key;
        const int line = keyed ? frames_.back().key_mark.line : mark.line;
        const std::string path = frames_.empty() ? "" : current_path();
        return fmt::format("{}:{}{}{}", file_, line + 1, path.empty() ? "" : ": ", path);
    }

    void open(const YAML::Mark& mark, YAML::anchor_t anchor, Settings container) {
        if (expects_key()) throw error(mark, "a key must be text, not a list or a map");
        if (frames_.size() >= kDeepest) throw too_deep(mark);
        count(mark, 1);
        Frame frame;
        frame.mark = mark;
        frame.anchor = anchor;
        frame.path = frames_.empty() ? "" : current_path();
        frame.is_map = container.is_map();
        frames_.push_back(std::move(frame));
    }

    void close() {
        Frame frame = std::move(frames_.back());
        keys_.erase(keys_.lower_bound({frames_.size(), ""}), keys_.end());
        frames_.pop_back();
        Settings value;
        if (frame.is_map) {
            std::set<std::string> keys;
            if (!frame.merged.empty())
                for (const auto& [key, entry] : frame.map) keys.insert(key);
            for (const auto& [mark, merged] : frame.merged) merge(frame.map, keys, mark, merged);
            value = Settings(std::move(frame.map));
        } else {
            value = Settings(std::move(frame.list));
        }
        value.at(where(frame.mark));
        if (frame.anchor != 0) anchors_[frame.anchor] = {value, frame.size, frame.depth};
        note_size(frame.size, frame.depth);
        place(frame.mark, std::move(value));
    }

    // Keys that the map has itself win.
    void merge(Settings::Map& map, std::set<std::string>& keys, const YAML::Mark& mark,
               const Settings& merged) const {
        if (merged.is_list()) {
            for (const Settings& each : merged.as_list()) merge(map, keys, mark, each);
            return;
        }
        if (!merged.is_map()) throw error(mark, "<< merges maps, found something else");
        for (const auto& [key, value] : merged.as_map())
            if (keys.insert(key).second) map.emplace_back(key, value);
    }

    void place(const YAML::Mark& mark, Settings value) {
        if (frames_.empty()) {
            root_ = std::move(value);
            return;
        }
        Frame& frame = frames_.back();
        if (!frame.is_map) {
            frame.list.push_back(std::move(value));
            return;
        }
        if (!frame.key) throw error(mark, "a key must be text");
        if (*frame.key == "<<")
            frame.merged.emplace_back(mark, std::move(value));
        else
            frame.map.emplace_back(std::move(*frame.key), std::move(value));
        frame.key.reset();
    }

    std::string file_;
    Settings root_;
    bool seen_ = false;
    size_t values_ = 0;
    std::vector<Frame> frames_;
    std::set<std::pair<size_t, std::string>> keys_;  // of the maps that are open, by their depth
    std::map<YAML::anchor_t, Anchor> anchors_;
};

}  // namespace

Settings parse_yaml(std::string_view text, const std::string& file) {
    require(text.size() <= kMostBytes, "{}: larger than {} MB, which no configuration is", file,
            kMostBytes >> 20);
    // yaml-cpp overlooks a quote that is never closed when a line break follows it.
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    std::istringstream stream{std::string(text)};
    Builder builder(file);
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) continue;
    } catch (const YAML::Exception& error) {
        fail("{}:{}:{}: no valid YAML: {}", file, error.mark.line + 1, error.mark.column + 1, error.msg);
    }
    return builder.take();
}

Settings read_yaml(const std::string& path) {
    const auto file = MappedFile::open(path);
    return parse_yaml({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, path);
}

}  // namespace kilter
