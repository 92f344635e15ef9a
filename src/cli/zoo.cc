#include "cli/zoo.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "zoo_models.h"  // made from python/kilter/zoo/models.json by the build

namespace kilter::cli {
namespace {

using Json = nlohmann::ordered_json;

Json parse(const std::string& text, const std::string& where) {
    try {
        Json models = Json::parse(text);
        return models.is_array() ? models : Json::array({models});
    } catch (const Json::exception& error) {
        fail("{}: is no JSON: {}", where, error.what());
    }
}

Json models_of(const std::string& config) {
    if (config.empty()) return parse(kZooModels, "models.json");
    std::ifstream file(config);
    std::ostringstream text;
    text << file.rdbuf();
    require(file.good(), "{}: cannot read the file", config);
    return parse(text.str(), config);
}

// Reads members of an object and says which one is wrong.
class Reader {
  public:
    Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
        require(object.is_object(), "{}: expected an object", where_);
    }

    Reader inner(const char* key) const {
        require(object_.contains(key), "{}: {} is missing", where_, key);
        return {object_.at(key), fmt::format("{}: {}", where_, key)};
    }

    std::string text(const char* key, bool needed) const {
        if (!object_.contains(key)) {
            require(!needed, "{}: {} is missing", where_, key);
            return {};
        }
        require(object_.at(key).is_string(), "{}: {} must be a text", where_, key);
        return object_.at(key).get<std::string>();
    }

    std::vector<std::string> list(const char* key) const {
        std::vector<std::string> result;
        if (!object_.contains(key)) return result;
        require(object_.at(key).is_array(), "{}: {} must be a list of texts", where_, key);
        for (const Json& item : object_.at(key)) {
            require(item.is_string(), "{}: {} must be a list of texts", where_, key);
            result.push_back(item.get<std::string>());
        }
        return result;
    }

    bool flag(const char* key) const {
        if (!object_.contains(key)) return false;
        require(object_.at(key).is_boolean(), "{}: {} must be true or false", where_, key);
        return object_.at(key).get<bool>();
    }

  private:
    const Json& object_;
    std::string where_;
};

std::string quoted(const std::string& path) {
    std::string result = "'";
    for (const char c : path) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

// An option with {} for a path, which must be given when the model has the option.
std::string filled(const std::string& option, const std::string& path, const char* flag) {
    if (option.empty()) return {};
    if (path.empty()) throw Error(fmt::format("this model needs {}", flag));
    std::string result = option;
    const size_t braces = result.find("{}");
    return braces == std::string::npos ? result : result.replace(braces, 2, quoted(path));
}

}  // namespace

std::vector<std::string> zoo_model_names() {
    std::vector<std::string> names;
    for (const Json& model : models_of({})) names.push_back(model.at("MODEL_NAME").get<std::string>());
    return names;
}

ZooModel find_zoo_model(const std::string& name, const std::string& config) {
    std::vector<std::string> known;
    const std::string where = config.empty() ? "models.json" : config;
    const Json models = models_of(config);
    for (const Json& entry : models) {
        const Reader model(entry, where);
        known.push_back(model.text("MODEL_NAME", true));
        if (known.back() != name) continue;
        const Reader launch = model.inner("LAUNCH_BENCHMARK_PARAMS");
        const Reader converter = model.inner("QUANTIZE_GRAPH_CONVERTER_PARAMS");
        return {.name = name,
                .script = launch.text("LAUNCH_BENCHMARK_SCRIPT", true),
                .arguments = launch.list("LAUNCH_BENCHMARK_CMD"),
                .in_graph = launch.text("IN_GRAPH", true),
                .data_location = launch.text("DATA_LOCATION", false),
                .model_source = launch.text("MODEL_SOURCE_DIR", false),
                .direct = launch.text("DIRECT_PASS_PARAMS_TO_MODEL", false),
                .inputs = converter.list("INPUT_NODE_LIST"),
                .outputs = converter.list("OUTPUT_NODE_LIST"),
                .excluded_ops = converter.list("EXCLUDED_OPS_LIST"),
                .excluded_nodes = converter.list("EXCLUDED_NODE_LIST"),
                .per_channel = converter.flag("PER_CHANNEL_FLAG")};
    }
    throw Error(fmt::format("{}: there is no model '{}'", where, name),
                fmt::format("it has {}", fmt::join(known, ", ")));
}

std::string launch_command(const ZooModel& model, const ZooPaths& paths) {
    std::string command = fmt::format("{} {}", paths.python, quoted(paths.models_zoo + "/" + model.script));
    for (const std::string& argument : model.arguments) command += argument;
    command += model.in_graph;
    command += filled(model.data_location, paths.data_location, "--data_location");
    command += filled(model.model_source, paths.models_source, "--models_source_dir");
    return command + model.direct;
}

}  // namespace kilter::cli
